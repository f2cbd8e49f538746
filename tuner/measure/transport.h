// How messages get from a tuner to a worker and back. What they say is protocol.h's; another way to carry
// them, through a queue on a network say, is one more implementation of this.
#pragma once

#include <limits>
#include <string>

namespace tilesmith {

// One end of a two-way line of messages, which arrive whole and in order or not at all. One thread at a time.
class Transport {
 public:
  enum class Receipt { kMessage, kEnd, kTimeout };  // kEnd: closed or broken, for good
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  virtual ~Transport() = default;
  // The next message; one that is there counts even when the deadline, a time of NowSeconds
  // (layouts/measure/clock.h), is over.
  virtual Receipt Receive(std::string& message, double deadline) = 0;
  // False when the other end is gone. The message has no newline in it.
  virtual bool Send(const std::string& message) = 0;
};

// Messages as lines over file descriptors: sockets, or pipes.
//
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
