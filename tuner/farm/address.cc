#include "tuner/farm/address.h"

#include <fmt/format.h>

#include <charconv>

#include "layouts/base/error.h"

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

}  // namespace tilesmith
