#include "tuner/task_scheduler.h"

#include <algorithm>
#include <utility>

#include "layouts/base/check.h"

namespace tilesmith {
namespace {

constexpr double kHistory = 0.9;       // how much the curve counts against the optimist
constexpr double kWindowBegin = 0.25;  // of the trials: what was gained since then tells the slope
constexpr double kSlope = 0.5;
constexpr double kSimilarity = 0.5;  // share of a similar task's GFLOP/s that is expected
constexpr double kExploration = 0.05;
constexpr int kFlatTrials = 128;        // the least that a curve must be flat for
constexpr double kFlatShare = 2.0 / 3;  // of the task's trials, likewise
constexpr double kFlatGain = 0.005;     // less is flat
constexpr int kHopelessTrials = 64;     // without anything that works

double BestOf(const TaskState& state) { return state.curve.empty() ? 0 : state.curve.back().best_seconds; }

// The best after the first `trials` trials; the first that worked where that is later.
double BestAfter(const TaskState& state, int trials) {
  double best = state.curve.front().best_seconds;
  for (const CurvePoint& point : state.curve) {
    if (point.trials > trials) break;
    best = point.best_seconds;
  }
  return best;
}

}  // namespace

double NetworkSeconds(std::span<const ScheduledTask> tasks, std::span<const double> best_seconds) {
  double total = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const ScheduledTask& task = tasks[i];
    if (task.replaces.empty()) {
      total += task.weight * best_seconds[i];
      continue;
    }
    double replaced = task.replaced_seconds;
    bool known = best_seconds[i] > 0;
    for (size_t part : task.replaces) {
      replaced += best_seconds[part];
      known = known && best_seconds[part] > 0;
    }
    if (known) total -= task.weight * std::max(0.0, replaced - best_seconds[i]);
  }
  return total;
}

TaskScheduler::TaskScheduler(std::vector<ScheduledTask> tasks, const SchedulerOptions& options)
    : tasks_(std::move(tasks)), stop_when_flat_(options.stop_when_flat), random_(options.seed) {}

bool TaskScheduler::IsFlat(const TaskState& state) {
  const int window = std::max(kFlatTrials, static_cast<int>(kFlatShare * state.trials));
  if (state.curve.empty()) return state.trials >= kHopelessTrials;
  if (state.trials <= window) return false;
  return BestAfter(state, state.trials - window) - BestOf(state) < kFlatGain * BestOf(state);
}

bool TaskScheduler::MayRun(size_t task, const TaskState& state) const {
  const bool flat = stop_when_flat_ && IsFlat(state);
  return !state.exhausted && state.trials < tasks_[task].most_trials && !flat;
}

double TaskScheduler::ExpectedGain(size_t task, std::span<const TaskState> states) const {
  const TaskState& state = states[task];
  if (state.curve.empty() || state.trials == 0) return 0;
  std::vector<double> best;
  for (const TaskState& other : states) best.push_back(BestOf(other));
  const double now = NetworkSeconds(tasks_, best);
  const double own = best[task];
  const auto network_with = [&](double seconds) {
    best[task] = seconds;
    return NetworkSeconds(tasks_, best);
  };
  const int then = static_cast<int>(kWindowBegin * state.trials);
  const double history = kSlope * (network_with(BestAfter(state, then)) - now) / state.trials;
  double hoped = own * (1 - 1.0 / state.trials);
  double similar = 0;  // GFLOP/s
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const bool counts = i != task && tasks_[i].kind == tasks_[task].kind && BestOf(states[i]) > 0;
    if (counts) similar = std::max(similar, tasks_[i].flops / BestOf(states[i]));
  }
  if (similar > 0) hoped = std::min(hoped, tasks_[task].flops / (kSimilarity * similar));
  const double optimism = now - network_with(hoped);
  return (kHistory * history + (1 - kHistory) * optimism) / state.cost;
}

std::optional<size_t> TaskScheduler::Next(std::span<const TaskState> states) {
  TILESMITH_CHECK(states.size() == tasks_.size(), "{} states of {} tasks", states.size(), tasks_.size());
  std::vector<size_t> able;
  std::optional<size_t> cold;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (!MayRun(i, states[i])) continue;
    able.push_back(i);
    const bool is_cold = states[i].trials < tasks_[i].warm_up || states[i].curve.empty();
    if (is_cold && (!cold || states[i].trials < states[*cold].trials)) cold = i;
  }
  if (cold || able.empty()) return cold;
  if (random_.Chance(kExploration)) return able[random_.Below(able.size())];
  size_t chosen = able[0];
  double most = -1;
  for (size_t i : able) {
    const double gain = ExpectedGain(i, states);
    if (gain > most) {
      chosen = i;
      most = gain;
    }
  }
  return chosen;
}

}  // namespace tilesmith
