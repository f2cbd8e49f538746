// Work of seconds or minutes: how it talks to its caller, how long it may go on, and which cores it has.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "layouts/base/error.h"
#include "layouts/base/stop_flag.h"
#include "layouts/base/thread_team.h"
#include "layouts/measure/clock.h"
#include "templates/device/device.h"

namespace tilesmith {

// Called between measurements, on the thread that works. What is empty is not called.
struct WorkSinks {
  std::function<void(const std::string&)> on_stage = {};  // what it does now: "oneDNN 3/20"
  std::function<void(const std::string&)> on_warning = {};
  const StopFlag* stop = nullptr;

  void Stage(const std::string& text) const {
    if (on_stage) on_stage(text);
  }
  void Warn(const std::string& text) const {
    if (on_warning) on_warning(text);
  }
};

// Work goes on until its caller stops it, or its time is over.
struct WorkLimit {
  const StopFlag* stop = nullptr;
  double end = std::numeric_limits<double>::infinity();  // on the clock of NowSeconds

  double left() const { return std::max(0.0, end - NowSeconds()); }
  bool out_of_time() const { return left() <= 0; }
  // For between two runs. Throws Error(kInterrupted).
  void ThrowIfOver() const {
    ThrowIfStopped(stop);
    if (out_of_time()) throw Error(ErrorCode::kInterrupted, "out of time");
  }
};

// Calls `work`; false when it was interrupted, with what it did so far in whatever state it left it. Other
// errors go through.
template <typename Work>
bool UnlessInterrupted(const Work& work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInterrupted) throw;
    return false;
  }
}

// As long as it lives the team of the calling thread is pinned to as many cores as the machine has threads.
// On destruction the thread gets its cores back, so that processes started later are not confined to one.
class PinnedTeam {
 public:
  explicit PinnedTeam(const DevicePtr& machine) { PinTeam(machine->threads()); }
  ~PinnedTeam() { Restore(before_); }
  PinnedTeam(const PinnedTeam&) = delete;
  PinnedTeam& operator=(const PinnedTeam&) = delete;
  const cpu_set_t& cores_before() const { return before_.mask; }

 private:
  const TeamPinning before_ = CurrentPinning();
};

// Stages of about the same length, each announced when it begins, with an estimate of the time left: what the
// stages so far took on average, times those to come, at most what the limit leaves.
class StageProgress {
 public:
  // How long a stage of length 1 may take is a guess, until the first one is over; 0: nothing is said of the
  // time until then.
  StageProgress(const WorkSinks& sinks, double guessed_seconds, const WorkLimit& limit = {})
      : sinks_(sinks), guessed_seconds_(guessed_seconds), limit_(limit) {}
  // From now on stages of this length together are to come.
  void Expect(int length) { to_come_ = length; }
  // How long a stage of length 1 should measure for all of them to fit: at most the guess.
  double SecondsEach() const;
  // The next stage begins, and the one before, if any, is over.
  void Begin(const std::string& what, int length = 1);
  // For between two measurements of a stage: announces it again, with less time left.
  void Tick() const;

 private:
  const WorkSinks& sinks_;
  const double guessed_seconds_;
  const WorkLimit limit_;
  int begun_ = 0, to_come_ = 0;
  double first_began_ = 0, estimated_end_ = 0;
  std::string stage_;
};

std::string DurationText(double seconds);      // "3m07s", "12.3s"
std::string MillisecondsText(double seconds);  // in ms, with four significant digits

}  // namespace tilesmith
