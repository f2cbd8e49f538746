// What the tuner and its measuring workers say to each other: one JSON object a line, over a socket.
//
//   worker: {"ready": 1}
//   tuner:  {"session": {...}}        worker: {"session": "ok"} or {"error": "why"}
//   tuner:  {"trial": {...}}          worker: {"running": true} when building is over, then {"result": {...}}
// A worker leaves when its input ends.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tuner/measure/measurer.h"

namespace tilesmith {

nlohmann::json SessionToJson(const MeasureSession& session);
nlohmann::json TrialToJson(const TrialRequest& request);
nlohmann::json ResultToJson(const TrialResult& result);
// Throw Error(kUsage) naming the field that is missing or wrong.
MeasureSession SessionFromJson(const nlohmann::json& json);
TrialRequest TrialFromJson(const nlohmann::json& json);
TrialResult ResultFromJson(const nlohmann::json& json);

// Lines over file descriptors, which it does not own.
class LineChannel {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  static Deadline After(double seconds);      // from now
  enum class Read { kLine, kEnd, kTimeout };  // kEnd: closed or broken

  LineChannel() = default;
  LineChannel(int in_fd, int out_fd) : in_fd_(in_fd), out_fd_(out_fd) {}
  // Blocks in poll until a line, the end, or the deadline.
  Read ReadLine(std::string& line, Deadline deadline = Deadline::max());
  // False when the other side is gone. `line` has no newline of its own. Raises no SIGPIPE on sockets.
  bool WriteLine(const std::string& line);

 private:
  int in_fd_ = -1, out_fd_ = -1;
  std::string pending_;
};

}  // namespace tilesmith
