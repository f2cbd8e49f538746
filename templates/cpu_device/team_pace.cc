#include "templates/cpu_device/team_pace.h"

#include <algorithm>

namespace tilesmith {
namespace {

constexpr TeamWay kWays[] = {TeamWay::kShares, TeamWay::kPieces, TeamWay::kAlone};

constexpr double kWaitedShare = 0.1, kLateShare = 0.3;  // of a run
constexpr int kWaitedRuns = 8, kLateRuns = 2;           // until other ways are tried
constexpr int kTrialRuns = 4;
constexpr int kMaxStay = 64, kMaxRest = 1024;
constexpr double kMaxStaySeconds = 0.5;

}  // namespace

void TeamPace::Mean::Add(double seconds) {
  constexpr int kMemory = 4;  // runs
  count_ = std::min(count_ + 1, kMemory);
  seconds_ += (seconds - seconds_) / count_;
}

void TeamPace::Watch(int rest) {
  phase_ = Phase::kWatching;
  way_ = TeamWay::kShares;
  waited_runs_ = late_runs_ = 0;
  runs_left_ = rest_ = rest;
}

void TeamPace::TryOthers(bool alone_too) {
  phase_ = Phase::kTrying;
  alone_too_ = alone_too;
  for (const TeamWay way : kWays) {
    const bool trial = way != way_ && (way != TeamWay::kAlone || alone_too);
    tried_[static_cast<size_t>(way)] = !trial;
    if (trial) mean(way) = {};
  }
  TryNext();
}

void TeamPace::TryNext() {
  for (const TeamWay way : kWays) {
    if (tried(way)) continue;
    tried_[static_cast<size_t>(way)] = true;
    way_ = way;
    waited_runs_ = late_runs_ = 0;
    runs_left_ = stayed_ == TeamWay::kShares ? kTrialRuns : 1;  // those that were slower a while ago
    return;
  }
  Choose();
}

void TeamPace::Choose() {
  TeamWay fastest = TeamWay::kShares;
  for (const TeamWay way : kWays) {
    if (way == TeamWay::kAlone && !alone_too_) continue;
    if (mean(way).seconds() < mean(fastest).seconds()) fastest = way;
  }
  const bool left_shares = stayed_ == TeamWay::kShares;
  if (fastest == TeamWay::kShares) {
    // Where the others were no help, they are not tried again soon.
    stayed_ = fastest;
    return Watch(left_shares ? std::min(std::max(2 * rest_, kTrialRuns), kMaxRest) : 0);
  }
  const int within = static_cast<int>(std::min<double>(kMaxStay, kMaxStaySeconds / mean(fastest).seconds()));
  stay_ = fastest == stayed_ ? std::clamp(2 * stay_, kTrialRuns, std::max(kTrialRuns, within)) : kTrialRuns;
  phase_ = Phase::kStaying;
  way_ = stayed_ = fastest;
  runs_left_ = stay_;
}

void TeamPace::Took(double seconds, const TeamWaits& waits) {
  mean(way_).Add(seconds);
  waited_runs_ = waits.seconds > kWaitedShare * seconds ? waited_runs_ + 1 : 0;
  late_runs_ = waits.late_seconds > kLateShare * seconds ? late_runs_ + 1 : 0;
  runs_left_ = std::max(runs_left_ - 1, 0);
  if (runs_left_ > 0) return;
  const bool late = late_runs_ >= kLateRuns;
  switch (phase_) {
    case Phase::kWatching:
      if (late || waited_runs_ >= kWaitedRuns) TryOthers(late);
      break;
    case Phase::kTrying:
      TryNext();
      break;
    case Phase::kStaying:
      TryOthers(alone_too_ || late);
      break;
  }
}

}  // namespace tilesmith
