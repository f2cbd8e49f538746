// Tuning all tasks of a network together: a task scheduler decides who gets the next turn, and enough of the
// time and the trials is kept back for what the graph tuner needs of every task: other layouts, and a fair
// timing.
//
// The order: turns of search; then task by task the other layouts and the re-timing. A budget too short for
// all of that cuts every task's share alike, but each gets at least one trial, of two templates if it has
// them.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tuner/tune.h"

namespace tilesmith {

struct NetworkTask {
  TuneRequest request;
  double weight = 1;  // how often the network contains it
  // A fused task: the tasks it is an alternative to, and what else it replaces (ScheduledTask).
  std::vector<size_t> replaces = {};
  double replaced_seconds = 0;
  bool known = false;  // what `resume` holds is enough: nothing is measured
};

struct NetworkTuneOptions {
  // Per task on average: distinct configs, those known from `resume` and those for other layouts included. 0:
  // as many as fit in the time.
  int trials = 256;
  double most_share = 4;  // a single task gets at most so many times the average
  double seconds_budget = std::numeric_limits<double>::infinity();
  bool stop_when_flat = true;  // a task whose curve is flat leaves its trials to others, or unspent
  uint64_t seed = 1;
};

enum class TaskStage { kWaiting, kSearch, kLayouts, kRetime, kDone, kKnown };
std::string_view TaskStageName(TaskStage stage);  // "", "search", "layouts", "re-timing", "done", "known"

struct TaskView {
  TaskStage stage = TaskStage::kWaiting;
  double best_seconds = 0;  // 0 while nothing has worked
  int trials = 0;           // measured by this call
  int failures = 0;
};

struct NetworkProgress {
  size_t task = 0;  // whose turn just ended
  std::vector<TaskView> tasks;
  double network_seconds = 0;  // NetworkSeconds; 0 while some task has no time
  int trials_measured = 0;
  double elapsed_seconds = 0;
  double left_seconds = 0;  // estimated
};

// Called on the tuning thread and never while a sample is taken. Any may be empty.
struct NetworkSinks {
  std::function<void(const Record&)> on_record = {};             // each new record, at once
  std::function<void(const NetworkProgress&)> on_progress = {};  // between turns
  std::function<bool()> should_stop = {};                        // asked before every trial
};

struct NetworkResult {
  std::vector<TuneResult> tasks;
  double network_seconds = 0;  // 0 where some task has no time
  bool interrupted = false;
  bool out_of_time = false;  // the budget ended the search
};

// What might be done next, and what that is worth.
struct TuningOffer {
  size_t task = 0;
  TaskStage stage = TaskStage::kSearch;  // or kLayouts, or kRetime
  double gain =
      0;  // seconds of the network, expected per second of measuring; infinite of a task without time
};

// The same a turn at a time, for those who have other things to do with the time as well, and compare what a
// turn is worth with what these are. Of the options only those of the search count, neither trials nor time.
class NetworkTuner {
 public:
  // All outlive it. Throws as TuneNetwork does.
  NetworkTuner(const std::vector<NetworkTask>& tasks, const NetworkTuneOptions& options, Measurer& measurer,
               const NetworkSinks& sinks);
  ~NetworkTuner();
  NetworkTuner(const NetworkTuner&) = delete;
  NetworkTuner& operator=(const NetworkTuner&) = delete;

  // The turn that is worth most; nullopt when none is worth anything. `layout_gains` says of every task how
  // many seconds of the network other layouts might save at most: it is what a plan pays for those it has.
  // May be empty: none is known.
  std::optional<TuningOffer> BestOffer(std::span<const double> layout_gains);
  // Takes the turn, a batch of trials or the re-timing of a task; no trial begins after `end`, on the clock
  // of NowSeconds. Returns the trials made.
  int Take(const TuningOffer& offer, double end);

  double NetworkSeconds() const;            // 0 while some task has no time
  std::vector<double> BestSeconds() const;  // of each task; 0 while it has no time
  NetworkResult Result() const;

 private:
  friend NetworkResult TuneNetwork(const std::vector<NetworkTask>&, const NetworkTuneOptions&, Measurer&,
                                   const NetworkSinks&);
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Every record reaches the sink as soon as it is known, so a killed process loses only the trial in flight.
// Throws Error(kUsage) for senseless options, and as TaskTuner does.
NetworkResult TuneNetwork(const std::vector<NetworkTask>& tasks, const NetworkTuneOptions& options,
                          Measurer& measurer, const NetworkSinks& sinks);

}  // namespace tilesmith
