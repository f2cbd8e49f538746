#include "templates/cpu_device/team_stream.h"

#include <algorithm>
#include <atomic>

#include "layouts/base/check.h"
#include "layouts/base/first_error.h"
#include "layouts/measure/clock.h"

namespace tilesmith {
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
