// A connection to Redis, by hiredis, which is looked for when a farm is first asked for: the program runs
// without it, and a build without its header says so.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "layouts/base/stop_flag.h"

namespace tilesmith {

// Where a farm's Redis is.
struct FarmAddress {
  std::string host;  // "" where it is a socket in the file system
  int port = 6379;
  std::string socket_path;  // of that
  int database = 0;
  std::string user, password;  // "": none

  // As a URL without user and password, to be shown.
  std::string ToString() const;
};

// redis://[[USER]:PASSWORD@]HOST[:PORT][/DB] or unix:///PATH[?db=DB]; user and password may be
// percent-encoded. Throws Error(kUsage) naming what is wrong, and no password: what stands before an '@' is
// never in the message.
FarmAddress ParseFarmUrl(std::string_view url);

struct RedisReply {
  enum class Kind { kNil, kInteger, kText, kArray, kNoGroup };  // kNoGroup: a stream lacks its consumer group
  Kind kind = Kind::kNil;
  int64_t integer = 0;
  std::string text;
  std::vector<RedisReply> elements;

  bool is_nil() const { return kind == Kind::kNil; }
  // Whether it is an array of that many elements or more.
  bool has(size_t count) const { return kind == Kind::kArray && elements.size() >= count; }
};

// One thread at a time. SIGPIPE has to be ignored by the process.
class Redis {
 public:
  // Connects when first called. `stop`, which may be null, outlives it.
  Redis(FarmAddress address, const StopFlag* stop);
  ~Redis();
  Redis(const Redis&) = delete;
  Redis& operator=(const Redis&) = delete;

  // For how long a call tries again whose connection fails; 0: not at all.
  void SetPatience(double seconds) { patience_seconds_ = seconds; }

  // Sends a command and waits for its reply, a few seconds beyond what it is meant to block for. A command
  // may reach the server more than once. Throws Error(kEnvironment) naming the address without its password
  // when the server stays out of reach, refuses the password or the command, or when hiredis is not there;
  // Error(kInterrupted) when `stop` is set meanwhile.
  RedisReply Call(const std::vector<std::string>& words, double block_seconds = 0);

  const FarmAddress& address() const { return address_; }

 private:
  struct Connection;
  struct Lost;
  RedisReply Once(const std::vector<std::string>& words, double block_seconds);
  void Connect();

  const FarmAddress address_;
  const StopFlag* stop_;
  double patience_seconds_ = 0;
  std::unique_ptr<Connection> connection_;
};

}  // namespace tilesmith
