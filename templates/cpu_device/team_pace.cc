#include "templates/cpu_device/team_pace.h"

#include <algorithm>

namespace tilesmith {
namespace {

constexpr double kLateShare = 0.3;  // of a run
constexpr int kLateRuns = 2;        // until one tries alone
constexpr int kTrialRuns = 4;
constexpr int kMaxStay = 64, kMaxRest = 1024;
constexpr double kMaxStaySeconds = 0.5;

}  // namespace

void TeamPace::Mean::Add(double seconds) {
  constexpr int kMemory = 4;  // runs
  count_ = std::min(count_ + 1, kMemory);
  seconds_ += (seconds - seconds_) / count_;
}

void TeamPace::Try(Mode mode, int runs) {
  mode_ = mode;
  runs_left_ = runs;
  late_runs_ = 0;
}

void TeamPace::Took(double seconds, double late_seconds) {
  (mode_ == Mode::kAlone ? alone_ : team_).Add(seconds);
  runs_left_ = std::max(runs_left_ - 1, 0);
  if (mode_ == Mode::kTeam) {
    late_runs_ = late_seconds > kLateShare * seconds ? late_runs_ + 1 : 0;
    if (late_runs_ < kLateRuns || runs_left_ > 0) return;
    alone_.Clear();
    stay_ = kTrialRuns;
    return Try(Mode::kAlone, kTrialRuns);
  }
  if (runs_left_ > 0) return;
  if (mode_ == Mode::kAlone && alone_.seconds() < team_.seconds()) {
    team_.Clear();
    return Try(Mode::kTeamAgain, kLateRuns);
  }
  if (mode_ == Mode::kTeamAgain && alone_.seconds() < team_.seconds()) {
    const int within = static_cast<int>(std::min<double>(kMaxStay, kMaxStaySeconds / alone_.seconds()));
    stay_ = std::clamp(2 * stay_, kTrialRuns, std::max(kTrialRuns, within));
    return Try(Mode::kAlone, stay_);
  }
  // The team is faster. Where being alone was no help, it is not tried again soon.
  rest_ = mode_ == Mode::kAlone ? std::min(std::max(2 * rest_, kTrialRuns), kMaxRest) : 0;
  Try(Mode::kTeam, rest_);
}

}  // namespace tilesmith
