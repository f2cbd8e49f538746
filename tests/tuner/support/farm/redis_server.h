// A Redis of a test's own: on a socket in a directory of its own, ended with the test.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "tests/support/subprocess.h"
#include "tests/support/temporary_files.h"
#include "tuner/farm/redis.h"

namespace tilesmith {

class RedisServer {
 public:
  // Whether there is one to start.
  static bool IsInstalled() { return std::system("command -v redis-server > /dev/null 2>&1") == 0; }
  explicit RedisServer(std::string password = "") : password_(std::move(password)) { Start(); }

  // With what it had on the disk, which is all but the last second.
  void Start() {
    std::vector<std::string> argv = {"redis-server",
                                     "--port",
                                     "0",
                                     "--unixsocket",
                                     socket(),
                                     "--dir",
                                     directory_.path(),
                                     "--appendonly",
                                     "yes",
                                     "--appendfsync",
                                     "everysec",
                                     "--save",
                                     ""};
    if (!password_.empty()) argv.insert(argv.end(), {"--requirepass", password_});
    program_ = std::make_unique<BackgroundProgram>(argv);
    Redis redis(address(), nullptr);
    redis.SetPatience(20);
    redis.Call({"PING"});
  }
  void Kill() {
    program_->Signal(SIGKILL);
    program_->Wait();
    program_.reset();
  }

  std::string socket() const { return directory_.File("redis.sock"); }
  std::string url() const { return "unix://" + socket(); }
  FarmAddress address() const {
    FarmAddress address = ParseFarmUrl(url());
    address.password = password_;
    return address;
  }
  RedisReply Call(const std::vector<std::string>& words) const {
    Redis redis(address(), nullptr);
    return redis.Call(words);
  }

 private:
  const TemporaryDirectory directory_;
  const std::string password_;
  std::unique_ptr<BackgroundProgram> program_;
};

}  // namespace tilesmith
