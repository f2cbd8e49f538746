// Which task of a network to tune next: the one whose next trials are expected to shorten the network most.
//
// After Ansor's task scheduler (Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep
// Learning", OSDI 2020, section 6). The network's time is a function f of the tasks' best times g_i. A trial
// of task i is worth, per trial,
//
//     kHistory * (half of what f gained over the last three quarters of the task's trials, per trial made)
//       + (1 - kHistory) * (f now - f with the g_i an optimist expects)
//
// The optimist takes trial t + 1 for as good as all t before it on average, g_i (1 - 1 / t), and believes
// that the task reaches half of the GFLOP/s of the best similar one. Two things differ from the paper. It
// takes the difference over a fixed number of trials; but curves fall as a power t^-p of the trials, so a
// short window shows zero most of the time, while for g(t / 4) - g(t) the slope is p / (4^p - 1) of it per
// trial made, 0.33 to 0.72 for every p up to 1. And f is not a weighted sum alone: a fused task is an
// alternative to the tasks it replaces, so its gain counts only from where it beats their sum.
//
// What is expected is divided by what a trial of the task costs, since a network has layers that take a
// hundred times longer than others. Every task gets its warm-up trials first; with a small probability a
// random task gets the turn; a task whose curve is flat gets none.
//
// Pure: no clock, no measuring, no output. Same seed and same states give the same choices.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tuner/search/config_sampling.h"
#include "tuner/tune.h"

namespace tilesmith {

// The scheduler knows this of a task beforehand.
struct ScheduledTask {
  double weight = 1;  // how often the network contains it
  double flops = 0;
  int kind = 0;         // tasks of one kind are similar: what one reaches in GFLOP/s, others may
  int warm_up = 32;     // trials before any comparison
  int most_trials = 0;  // gets no more
  // A fused task: weight * max(0, their times + replaced_seconds - its own) is what it saves.
  std::vector<size_t> replaces = {};  // tasks; empty: not fused
  double replaced_seconds = 0;        // of what it replaces beside them
};

// Where a task stands.
struct TaskState {
  std::span<const CurvePoint> curve;  // improvements of its best; empty: nothing has worked
  int trials = 0;
  double cost = 1;         // of a trial, in seconds, say: only ratios among tasks matter
  bool exhausted = false;  // has no more configs
};

// The time of the network; a task without a time counts as 0, a fused one as saving nothing.
double NetworkSeconds(std::span<const ScheduledTask> tasks, std::span<const double> best_seconds);

struct SchedulerOptions {
  uint64_t seed = 1;
  bool stop_when_flat = true;  // false: trials are spent whether they help or not
};

class TaskScheduler {
 public:
  TaskScheduler(std::vector<ScheduledTask> tasks, const SchedulerOptions& options);

  // Whose turn it is; nullopt when no task has anything to gain. Precondition: a state for every task.
  std::optional<size_t> Next(std::span<const TaskState> states);

  // Whether the curve has been flat for so long that twice the trials would hardly help.
  static bool IsFlat(const TaskState& state);
  // Seconds of the network that one unit of cost spent on the task is expected to save.
  double ExpectedGain(size_t task, std::span<const TaskState> states) const;
  const std::vector<ScheduledTask>& tasks() const { return tasks_; }

 private:
  bool MayRun(size_t task, const TaskState& state) const;

  std::vector<ScheduledTask> tasks_;
  bool stop_when_flat_;
  RandomSource random_;
};

}  // namespace tilesmith
