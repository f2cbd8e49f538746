#include "templates/cpu_device/team_stream.h"

#include <algorithm>
#include <atomic>

#include "layouts/base/check.h"
#include "layouts/base/first_error.h"
#include "layouts/measure/clock.h"

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

namespace {

// Calls do_stage(launch, stage, next) for every stage of a program, `next` being the launch behind a launch's
// last stage; `seconds`, when not empty, gets the duration of each launch.
template <typename DoStage>
void ForEachStage(std::span<const Launch> program, std::span<double> seconds, const DoStage& do_stage) {
  double before = seconds.empty() ? 0 : NowSeconds();
  for (size_t i = 0; i < program.size(); ++i) {
    const int stages = program[i].kernel->Stages();
    for (int stage = 0; stage < stages; ++stage) {
      const bool goes_on = stage + 1 == stages && i + 1 < program.size();
      do_stage(program[i], stage, goes_on ? &program[i + 1] : nullptr);
    }
    if (seconds.empty()) continue;
    const double after = NowSeconds();
    seconds[i] = after - before;
    before = after;
  }
}

void RunTasks(const Launch& launch, int stage, TaskRange range, const StopFlag* stop) {
  ThrowIfStopped(stop);
  launch.kernel->Run({launch.inputs, launch.output, launch.scratch}, stage, range);
}

}  // namespace

TeamStream::TeamStream(int threads, WaitPolicy wait, const StopFlag* stop)
    : threads_(threads), stop_(stop), dealer_(threads, wait), waits_(static_cast<size_t>(threads)) {
  std::atomic<int> started{0};
  RunOnTeam(threads, [&](int) { ++started; });
  TILESMITH_CHECK(started == threads, "{} of {} threads", started.load(), threads);
}

void TeamStream::Run(std::span<const Launch> program, std::span<double> seconds) {
  if (threads_ == 1) return RunAlone(program, seconds);
  if (!seconds.empty()) {
    RunDealt(TaskDealer::Dealing::kShares, program, seconds);
    return;
  }
  const double begin = NowSeconds();
  TeamWaits waits;
  if (pace_.way() == TeamWay::kAlone) {
    RunAlone(program, {});
  } else {
    const bool pieces = pace_.way() == TeamWay::kPieces;
    waits = RunDealt(pieces ? TaskDealer::Dealing::kPieces : TaskDealer::Dealing::kShares, program, {});
  }
  pace_.Took(NowSeconds() - begin, waits);
}

void TeamStream::RunByAll(std::span<const Launch> program) {
  if (threads_ == 1) return RunAlone(program, {});
  RunDealt(TaskDealer::Dealing::kShares, program, {});
}

void TeamStream::RunAlone(std::span<const Launch> program, std::span<double> seconds) const {
  const FlushDenormals flush;
  ForEachStage(program, seconds, [&](const Launch& launch, int stage, const Launch*) {
    const Share share(launch.kernel->Grid(stage), launch.split, 0, 1);
    share.ForEachRange(0, share.tasks(), 0, [&](TaskRange range) { RunTasks(launch, stage, range, stop_); });
  });
}

TeamWaits TeamStream::RunDealt(TaskDealer::Dealing dealing, std::span<const Launch> program,
                               std::span<double> seconds) {
  FirstError error;
  TaskDealer::Seat last;
  RunOnTeam(threads_, [&](int thread) {
    TaskDealer::Seat seat = dealer_.Begin(thread);
    const auto own_seconds = thread == 0 ? seconds : std::span<double>();
    ForEachStage(program, own_seconds, [&](const Launch& launch, int stage, const Launch* next) {
      const bool loosely = seconds.empty() && next != nullptr && next->after_neighbours;
      const auto wait = loosely ? TaskDealer::WaitFor::kNeighbours : TaskDealer::WaitFor::kAll;
      dealer_.DoStage(launch.kernel->Grid(stage), launch.split, dealing, wait, seat, [&](TaskRange range) {
        if (error.raised()) return;
        try {
          RunTasks(launch, stage, range, stop_);
        } catch (...) {
          error.Capture();  // the others still count on the tasks being done with
        }
      });
    });
    waits_[static_cast<size_t>(thread)].waits = seat.waits;
    if (thread == 0) last = seat;
  });
  dealer_.End(last);
  error.Rethrow();
  TeamWaits most;
  for (const auto& [waits] : waits_) {
    most.seconds = std::max(most.seconds, waits.seconds);
    most.late_seconds = std::max(most.late_seconds, waits.late_seconds);
  }
  return most;
}

}  // namespace tilesmith
