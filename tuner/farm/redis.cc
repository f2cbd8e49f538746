#include "tuner/farm/redis.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include "layouts/base/error.h"
#include "layouts/base/shared_library.h"
#include "layouts/measure/clock.h"

#ifdef TILESMITH_HIREDIS
#include <hiredis/hiredis.h>
#endif

namespace tilesmith {
namespace {

constexpr std::string_view kForms = "redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], unix:///PATH[?db=DB]";

[[noreturn]] void RefuseUrl(std::string_view what) {
  throw Error(ErrorCode::kUsage, fmt::format("farm URL: {} (allowed: {})", what, kForms));
}

int ParseNumber(std::string_view text, int least, int most, const char* name) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    RefuseUrl(fmt::format("{} is \"{}\", not {} to {}", name, text, least, most));
  return value;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0) RefuseUrl("a % in user or password is not followed by two hexadecimal digits");
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

void CheckText(std::string_view text, const char* name) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f')
      RefuseUrl(fmt::format("a space in its {}", name));
  }
}

FarmAddress ParseUnix(std::string_view rest) {
  FarmAddress address;
  const size_t query = rest.find('?');
  address.socket_path = rest.substr(0, query);
  if (!address.socket_path.starts_with('/')) RefuseUrl("the path of a socket begins with /");
  CheckText(address.socket_path, "path");
  if (query == std::string_view::npos) return address;
  const std::string_view option = rest.substr(query + 1);
  if (!option.starts_with("db=")) RefuseUrl(fmt::format("\"{}\" is not known", option));
  address.database = ParseNumber(option.substr(3), 0, 1 << 20, "database");
  return address;
}

}  // namespace

std::string FarmAddress::ToString() const {
  if (host.empty()) {
    return fmt::format("unix://{}{}", socket_path, database > 0 ? fmt::format("?db={}", database) : "");
  }
  const bool brackets = host.find(':') != std::string::npos;
  return fmt::format("redis://{}{}{}:{}/{}", brackets ? "[" : "", host, brackets ? "]" : "", port, database);
}

FarmAddress ParseFarmUrl(std::string_view url) {
  constexpr std::string_view kRedis = "redis://", kUnix = "unix://", kTls = "rediss://";
  if (url.starts_with(kTls)) RefuseUrl("rediss:// is not spoken: use a tunnel, such as stunnel or ssh -L");
  if (url.starts_with(kUnix)) return ParseUnix(url.substr(kUnix.size()));
  if (!url.starts_with(kRedis)) RefuseUrl("it begins neither with redis:// nor with unix://");
  std::string_view rest = url.substr(kRedis.size());
  FarmAddress address;
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    const std::string_view who = rest.substr(0, at);
    const size_t colon = who.find(':');
    if (colon == std::string_view::npos) RefuseUrl("what stands before @ has no colon");
    address.user = PercentDecoded(who.substr(0, colon));
    address.password = PercentDecoded(who.substr(colon + 1));
    rest.remove_prefix(at + 1);
  }
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    if (slash + 1 < rest.size())
      address.database = ParseNumber(rest.substr(slash + 1), 0, 1 << 20, "database");
    rest = rest.substr(0, slash);
  }
  size_t host_end = rest.rfind(':');
  if (rest.starts_with('[')) {
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) RefuseUrl("a [ is not closed");
    address.host = rest.substr(1, close - 1);
    host_end = close + 1;
    if (host_end < rest.size() && rest[host_end] != ':') RefuseUrl("behind ] stands no port");
  } else {
    address.host = rest.substr(0, host_end);
  }
  if (address.host.empty()) RefuseUrl("it names no host");
  CheckText(address.host, "host");
  if (host_end < rest.size()) address.port = ParseNumber(rest.substr(host_end + 1), 1, 65535, "port");
  return address;
}

// The connection failed, or the server is not ready yet: what may be tried again.
struct Redis::Lost {
  std::string why;
};

#ifdef TILESMITH_HIREDIS
namespace {

constexpr double kConnectSeconds = 3;
constexpr double kReplySeconds = 5;

struct Hiredis {
  decltype(&redisConnectWithTimeout) connect = nullptr;
  decltype(&redisConnectUnixWithTimeout) connect_unix = nullptr;
  decltype(&redisSetTimeout) set_timeout = nullptr;
  decltype(&redisEnableKeepAlive) keep_alive = nullptr;
  decltype(&redisCommandArgv) command = nullptr;
  decltype(&freeReplyObject) free_reply = nullptr;
  decltype(&redisFree) free_context = nullptr;
};

Hiredis LoadHiredis() {
  static constexpr const char* kNames[] = {TILESMITH_HIREDIS};
  static constexpr SystemLibrary kHiredis = {"hiredis", "which a farm is reached by", kNames};
  void* const library = RequireLibrary(kHiredis);
  Hiredis hiredis;
  const auto find = [&](const char* name, auto& function) {
    RequireFunction(library, kHiredis, name, function);
  };
  find("redisConnectWithTimeout", hiredis.connect);
  find("redisConnectUnixWithTimeout", hiredis.connect_unix);
  find("redisSetTimeout", hiredis.set_timeout);
  find("redisEnableKeepAlive", hiredis.keep_alive);
  find("redisCommandArgv", hiredis.command);
  find("freeReplyObject", hiredis.free_reply);
  find("redisFree", hiredis.free_context);
  return hiredis;
}

const Hiredis& Library() {
  static const Hiredis hiredis = LoadHiredis();
  return hiredis;
}

timeval ToTimeval(double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  return {whole, static_cast<suseconds_t>((seconds - static_cast<double>(whole)) * 1e6)};
}

RedisReply ToReply(const redisReply& raw) {
  RedisReply reply;
  switch (raw.type) {
    case REDIS_REPLY_INTEGER:
      reply.kind = RedisReply::Kind::kInteger;
      reply.integer = raw.integer;
      break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      reply.kind = RedisReply::Kind::kText;
      reply.text.assign(raw.str, static_cast<size_t>(raw.len));
      break;
    case REDIS_REPLY_ARRAY:
      reply.kind = RedisReply::Kind::kArray;
      for (size_t i = 0; i < raw.elements; ++i) reply.elements.push_back(ToReply(*raw.element[i]));
      break;
    default:
      break;
  }
  return reply;
}

}  // namespace

struct Redis::Connection {
  explicit Connection(redisContext* context) : raw(context) {}
  ~Connection() {
    if (raw != nullptr) Library().free_context(raw);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Throws Lost; errors that the server answers are thrown as `address`'s.
  RedisReply Command(const std::vector<std::string>& words, const FarmAddress& address) {
    std::vector<const char*> texts;
    std::vector<size_t> sizes;
    for (const std::string& word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    auto* const answer = static_cast<redisReply*>(
        Library().command(raw, static_cast<int>(words.size()), texts.data(), sizes.data()));
    if (answer == nullptr) throw Lost{raw->errstr};
    const std::unique_ptr<redisReply, decltype(&freeReplyObject)> owner(answer, Library().free_reply);
    if (answer->type != REDIS_REPLY_ERROR) return ToReply(*answer);
    const std::string why(answer->str, static_cast<size_t>(answer->len));
    if (why.starts_with("NOGROUP")) return {.kind = RedisReply::Kind::kNoGroup, .text = why, .elements = {}};
    for (const char* passing : {"LOADING", "BUSY ", "MASTERDOWN", "TRYAGAIN"}) {
      if (why.starts_with(passing)) throw Lost{why};
    }
    const bool of_password = why.starts_with("NOAUTH") || why.starts_with("WRONGPASS") || words[0] == "AUTH";
    throw Error(ErrorCode::kEnvironment,
                fmt::format("farm {}: {}{}", address.ToString(), why,
                            of_password ? " (a password is given in REDISCLI_AUTH, or in the URL)" : ""));
  }

  redisContext* raw;
};

void Redis::Connect() {
  const Hiredis& hiredis = Library();
  const timeval patience = ToTimeval(kConnectSeconds);
  auto connection = std::make_unique<Connection>(
      address_.host.empty() ? hiredis.connect_unix(address_.socket_path.c_str(), patience)
                            : hiredis.connect(address_.host.c_str(), address_.port, patience));
  if (connection->raw == nullptr) throw Lost{"out of memory"};
  if (connection->raw->err != 0) throw Lost{connection->raw->errstr};
  if (!address_.host.empty()) hiredis.keep_alive(connection->raw);
  hiredis.set_timeout(connection->raw, ToTimeval(kReplySeconds));
  if (!address_.password.empty()) {
    std::vector<std::string> words = {"AUTH", address_.user, address_.password};
    if (address_.user.empty()) words.erase(words.begin() + 1);
    connection->Command(words, address_);
  }
  if (address_.database > 0) connection->Command({"SELECT", std::to_string(address_.database)}, address_);
  connection_ = std::move(connection);
}

RedisReply Redis::Once(const std::vector<std::string>& words, double block_seconds) {
  if (!connection_) Connect();
  if (block_seconds > 0) Library().set_timeout(connection_->raw, ToTimeval(kReplySeconds + block_seconds));
  RedisReply reply = connection_->Command(words, address_);
  if (block_seconds > 0) Library().set_timeout(connection_->raw, ToTimeval(kReplySeconds));
  return reply;
}

#else

struct Redis::Connection {};

RedisReply Redis::Once(const std::vector<std::string>& /*words*/, double /*block_seconds*/) {
  throw Error(ErrorCode::kEnvironment,
              "this build of tilesmith has no farm: install libhiredis-dev and build it again");
}

#endif

Redis::Redis(FarmAddress address, const StopFlag* stop) : address_(std::move(address)), stop_(stop) {}
Redis::~Redis() = default;

RedisReply Redis::Call(const std::vector<std::string>& words, double block_seconds) {
  constexpr double kLongestPause = 0.25;
  const double begin = NowSeconds();
  for (double pause = 0.01;; pause = std::min(2 * pause, kLongestPause)) {
    try {
      return Once(words, block_seconds);
    } catch (const Lost& lost) {
      connection_.reset();
      const std::string what = fmt::format("farm {}: {}", address_.ToString(), lost.why);
      if (IsStopped(stop_)) throw Error(ErrorCode::kInterrupted, what);
      if (NowSeconds() + pause > begin + patience_seconds_) throw Error(ErrorCode::kEnvironment, what);
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  }
}

}  // namespace tilesmith
