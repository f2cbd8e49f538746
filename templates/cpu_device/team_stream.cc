#include "templates/cpu_device/team_stream.h"

#include <atomic>

#include "layouts/base/check.h"
#include "layouts/base/first_error.h"
#include "layouts/measure/clock.h"

namespace tilesmith {
TeamStream::TeamStream(int threads, WaitPolicy wait, const StopFlag* stop)
    : threads_(threads), stop_(stop), barrier_(threads, wait) {
  std::atomic<int> started{0};
  RunOnTeam(threads, [&](int) { ++started; });
  TILESMITH_CHECK(started == threads, "{} of {} threads", started.load(), threads);
}

void TeamStream::Run(std::span<const Launch> program, std::span<double> seconds) {
  if (threads_ == 1 || !seconds.empty()) {
    RunBy(threads_, program, seconds);
    return;
  }
  const double begin = NowSeconds();
  const double late_seconds = RunBy(pace_.alone() ? 1 : threads_, program, {});
  pace_.Took(NowSeconds() - begin, late_seconds);
}

double TeamStream::RunBy(int threads, std::span<const Launch> program, std::span<double> seconds) {
  FirstError error;
  double late_seconds = 0;
  RunOnTeam(threads, [&](int thread) {
    const bool timed = thread == 0 && !seconds.empty();
    double before = timed ? NowSeconds() : 0;
    for (size_t i = 0; i < program.size(); ++i) {
      const Launch& step = program[i];
      const KernelArgs args{step.inputs, step.output, step.scratch};
      const int stages = step.kernel->Stages();
      for (int stage = 0; stage < stages; ++stage) {
        const Share share(step.kernel->Grid(stage), step.split, thread, threads);
        share.ForEachRange(0, share.tasks(), thread, [&](TaskRange range) {
          if (error.raised()) return;
          try {
            ThrowIfStopped(stop_);
            step.kernel->Run(args, stage, range);
          } catch (...) {
            error.Capture();  // the others still expect this thread at every barrier
          }
        });
        if (threads == 1) continue;
        if (const auto generation = barrier_.ArriveAndSpin()) {
          const double late = NowSeconds();
          barrier_.WaitWhile(*generation);
          if (thread == 0) late_seconds += NowSeconds() - late;
        }
      }
      if (timed) {
        const double after = NowSeconds();
        seconds[i] = after - before;
        before = after;
      }
    }
  });
  error.Rethrow();
  return late_seconds;
}

}  // namespace tilesmith
