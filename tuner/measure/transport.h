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

}  // namespace tilesmith
