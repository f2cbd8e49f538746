// Runs prepared steps one after the other on a team of threads.
#pragma once

#include <span>
#include <vector>

#include "layouts/base/stop_flag.h"
#include "layouts/base/thread_team.h"

namespace tilesmith {

struct PreparedStep {
  const Kernel* kernel = nullptr;
  std::vector<InputView> inputs;
  OutputView output;
  void* scratch = nullptr;
};

class StepRunner {
 public:
  // Starts the team, so that running allocates nothing. `stop`, which may be null, outlives the runner.
  StepRunner(int threads, const StopFlag* stop);

  // Runs every step in one parallel region, with a barrier after each stage of each step. When a kernel
  // throws on any thread, or with Error(kInterrupted) once `stop` is set, the rest is skipped and the first
  // exception is thrown here. `seconds`, when not empty, gets each step's duration as thread 0 sees it
  // between barriers.
  void Run(std::span<const PreparedStep> steps, std::span<double> seconds);

 private:
  const int threads_;
  const StopFlag* const stop_;
  SpinBarrier barrier_;
};

}  // namespace tilesmith
