// Messages as lines over file descriptors: sockets, or pipes.
#pragma once

#include <string>

#include "tuner/measure/transport.h"

namespace tilesmith {

// Longer ones are taken for a broken transport.
constexpr size_t kMaxMessageBytes = size_t{64} << 20;

class LineTransport : public Transport {
 public:
  LineTransport() = default;
  // Does not own the descriptors.
  LineTransport(int in_fd, int out_fd) : in_fd_(in_fd), out_fd_(out_fd) {}

  // Waits in poll.
  Receipt Receive(std::string& line, double deadline = kNever) override;
  // Raises no SIGPIPE on sockets.
  bool Send(const std::string& line) override;

 private:
  int in_fd_ = -1, out_fd_ = -1;
  std::string pending_;
};

}  // namespace tilesmith
