#include "tuner/network_tuner.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <tuple>

#include "layouts/base/check.h"
#include "layouts/measure/clock.h"
#include "tuner/task_scheduler.h"
#include "tuner/task_tuner.h"

namespace tilesmith {
namespace {

constexpr double kLargestReserve = 0.45;  // of the time budget, for layouts and re-timing
constexpr double kUnknownTrialSeconds = 0.01;
constexpr int kLayoutTrialsPerPair = 5;  // where the trials are not counted
constexpr double kFullTrial = 1.5;       // a re-timing trial, which never stops early, beside an average one
constexpr int kRescueTrials = 4;         // for a task that the budget left without any time
constexpr int kUncounted = 1'000'000;
constexpr double kWarmUpGain = 0.2;    // of a task's time, expected of its warm-up
constexpr double kLayoutChance = 0.5;  // that other layouts save what they might
constexpr double kLuck = 0.01;         // of a task's time, lost where what looks best only was lucky
constexpr int kTrialsToRetime = 32;

// Similar: the same kind of convolution, whatever its sizes.
std::vector<int> KindsOf(const std::vector<NetworkTask>& tasks) {
  std::map<std::tuple<int64_t, int64_t, int64_t, bool, bool, bool>, int> kinds;
  std::vector<int> of_task;
  for (const NetworkTask& task : tasks) {
    const ConvWorkload& w = task.request.workload;
    const std::tuple key = {w.kh, w.kw, w.sh, w.g > 1, w.g == w.ic, w.fused()};
    of_task.push_back(kinds.try_emplace(key, static_cast<int>(kinds.size())).first->second);
  }
  return of_task;
}

}  // namespace

class NetworkTuner::Impl {
 public:
  Impl(const std::vector<NetworkTask>& tasks, const NetworkTuneOptions& options, Measurer& measurer,
       const NetworkSinks& sinks)
      : options_(options), sinks_(sinks), scheduler_({}, {}) {
    RequireAtLeast(0, "trials", options.trials);
    RequireAtLeast(0, "time budget", options.seconds_budget);
    std::vector<ScheduledTask> scheduled;
    const std::vector<int> kinds = KindsOf(tasks);
    for (size_t i = 0; i < tasks.size(); ++i) {
      tasks_.emplace_back(i, tasks[i], measurer, sinks);
      scheduled.push_back(ToScheduled(tasks[i], kinds[i]));
    }
    scheduler_ = TaskScheduler(std::move(scheduled), {options.seed, options.stop_when_flat});
  }

  NetworkResult Run() {
    Search();
    Rescue();
    Finish();
    return Result();
  }

  NetworkResult Result() const {
    NetworkResult result;
    for (const RunningTask& task : tasks_) {
      result.tasks.push_back(task.tuner.Result());
      result.tasks.back().search_seconds = task.seconds;
    }
    result.network_seconds = TotalSeconds();
    result.interrupted = interrupted_;
    result.out_of_time = out_of_time_;
    return result;
  }

  std::optional<TuningOffer> BestOffer(std::span<const double> layout_gains) {
    std::optional<TuningOffer> best;
    const auto offer = [&](const TuningOffer& one) {
      if (!best || one.gain > best->gain) best = one;
    };
    const std::vector<TaskState> states = States();
    if (const auto next = scheduler_.Next(states))
      offer({*next, TaskStage::kSearch, SearchGain(*next, states)});
    for (const RunningTask& task : tasks_) {
      if (task.stage == TaskStage::kKnown || task.best_seconds() == 0 || IsHopeless(task)) continue;
      const size_t improvements = task.tuner.curve().size();
      if (task.layouts_of != improvements && task.layout_trials < LayoutTrials(task) &&
          task.index < layout_gains.size() && layout_gains[task.index] > 0)
        offer({task.index, TaskStage::kLayouts,
               kLayoutChance * layout_gains[task.index] / std::max(LayoutSeconds(task), 1e-9)});
      if (task.retimed_of != improvements && task.tuner.trials_measured() >= kTrialsToRetime)
        offer({task.index, TaskStage::kRetime,
               kLuck * WeightedSeconds(task) / std::max(RetimingSeconds(task), 1e-9)});
    }
    return best;
  }

  int Take(const TuningOffer& offer, double end) {
    RunningTask& task = tasks_[offer.task];
    const std::function<bool()> stopped = StopAt(end - start_);
    // All tasks get a time before any gets more.
    const bool is_first = task.best_seconds() == 0 && task.tuner.trials_measured() == 0;
    const int batch = task.tuner.request().options.batch;
    const Turn turn = {is_first ? static_cast<int>(task.tuner.LeastTemplates()) : batch, stopped};
    const size_t improvements = task.tuner.curve().size();
    return TakeTurn(task, offer.stage, [&] {
      if (offer.stage == TaskStage::kSearch) return task.tuner.Search(turn);
      if (offer.stage == TaskStage::kRetime) {
        if (task.tuner.Retime(stopped)) task.retimed_of = task.tuner.curve().size();
        return 0;
      }
      const int made = task.tuner.CoverLayouts(turn);
      task.layout_trials += made;
      if (made == 0) task.layouts_of = improvements;
      return made;
    });
  }

  double TotalSeconds() const {
    std::vector<double> best;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      best.push_back(tasks_[i].best_seconds());
      if (best.back() == 0 && scheduler_.tasks()[i].replaces.empty()) return 0;
    }
    return tilesmith::NetworkSeconds(scheduler_.tasks(), best);
  }

  std::vector<double> BestSeconds() const {
    std::vector<double> best;
    best.reserve(tasks_.size());
    for (const RunningTask& task : tasks_) best.push_back(task.best_seconds());
    return best;
  }

 private:
  struct RunningTask {
    RunningTask(size_t own_index, const NetworkTask& task, Measurer& measurer, const NetworkSinks& sinks)
        : index(own_index),
          tuner(task.request, measurer, sinks.on_record),
          stage(task.known ? TaskStage::kKnown : TaskStage::kWaiting) {}

    bool open() const { return stage != TaskStage::kKnown && stage != TaskStage::kDone; }
    double best_seconds() const {
      const Record* best = tuner.book().Best();
      return best ? best->seconds : 0;
    }

    size_t index;
    TaskTuner tuner;
    TaskStage stage;
    double seconds = 0;  // spent on its trials, re-timing left out
    int layout_trials = 0;
    // How many improvements the task had when its layouts were last done, and when it was last timed again.
    size_t layouts_of = 0, retimed_of = 0;
  };

  bool counted() const { return options_.trials > 0; }
  double Elapsed() const { return NowSeconds() - start_; }
  bool Interrupted() {
    interrupted_ = interrupted_ || (sinks_.should_stop && sinks_.should_stop());
    return interrupted_;
  }
  std::function<bool()> StopAt(double elapsed) {
    return [this, elapsed] { return Interrupted() || Elapsed() >= elapsed; };
  }

  ScheduledTask ToScheduled(const NetworkTask& task, int kind) const {
    ScheduledTask scheduled;
    scheduled.weight = task.weight;
    scheduled.flops = task.request.workload.flops();
    scheduled.kind = kind;
    scheduled.warm_up = static_cast<int>(tasks_.back().tuner.templates()) * task.request.options.batch;
    const double most = options_.most_share * options_.trials;
    scheduled.most_trials = task.known ? 0 : counted() ? static_cast<int>(most) : kUncounted;
    scheduled.replaces = task.replaces;
    scheduled.replaced_seconds = task.replaced_seconds;
    return scheduled;
  }

  // A fused task that is far behind what it replaces will not be chosen in any layout.
  bool IsHopeless(const RunningTask& task) const {
    constexpr double kFarBehind = 1.5;
    const ScheduledTask& scheduled = scheduler_.tasks()[task.index];
    if (scheduled.replaces.empty() || task.best_seconds() == 0) return false;
    double replaced = scheduled.replaced_seconds;
    for (size_t part : scheduled.replaces) {
      if (tasks_[part].best_seconds() == 0) return false;
      replaced += tasks_[part].best_seconds();
    }
    return task.best_seconds() > kFarBehind * replaced;
  }

  // Trials of the task's own that CoverLayouts may make.
  int LayoutTrials(const RunningTask& task) const {
    return counted() ? task.tuner.LayoutShare(options_.trials)
                     : kLayoutTrialsPerPair * task.tuner.layout_pairs();
  }

  double TrialSeconds(const RunningTask& task) const {
    const int trials = task.tuner.trials_measured();
    if (trials > 0) return task.seconds / trials;
    return trials_measured_ > 0 ? turn_seconds_ / trials_measured_ : kUnknownTrialSeconds;
  }
  double LayoutSeconds(const RunningTask& task) const { return LayoutTrials(task) * TrialSeconds(task); }
  double RetimingSeconds(const RunningTask& task) const {
    return kFullTrial * task.tuner.RetimingTrials() * TrialSeconds(task);
  }

  // What layouts and re-timing of the tasks that are not done will take.
  double FinishSeconds() const {
    double seconds = 0;
    for (const RunningTask& task : tasks_) {
      if (task.open() && !IsHopeless(task)) seconds += LayoutSeconds(task) + RetimingSeconds(task);
    }
    return seconds;
  }

  // Trials that may still be made by all tasks together.
  int TrialsLeft() const {
    if (!counted()) return kUncounted;
    int left = 0;
    for (const RunningTask& task : tasks_) {
      if (task.stage != TaskStage::kKnown) left += options_.trials - task.tuner.trials();
    }
    return std::max(0, left);
  }
  int SearchTrialsLeft() const {
    if (!counted()) return kUncounted;
    int left = TrialsLeft();
    for (const RunningTask& task : tasks_) {
      if (task.open() && !IsHopeless(task)) left -= LayoutTrials(task);
    }
    return std::max(0, left);
  }

  std::vector<TaskState> States() const {
    std::vector<TaskState> states;
    states.reserve(tasks_.size());
    for (const RunningTask& task : tasks_) {
      states.push_back({task.tuner.curve(), task.tuner.trials(), TrialSeconds(task), task.tuner.exhausted()});
    }
    return states;
  }

  double WeightedSeconds(const RunningTask& task) const {
    return scheduler_.tasks()[task.index].weight * task.best_seconds();
  }

  // Much is expected of a task that is new, and all of one without any time: nothing can be planned before.
  double SearchGain(size_t index, std::span<const TaskState> states) const {
    const RunningTask& task = tasks_[index];
    if (task.best_seconds() == 0) return std::numeric_limits<double>::infinity();
    const int left = scheduler_.tasks()[index].warm_up - states[index].trials;
    const double gain = scheduler_.ExpectedGain(index, states);
    return left <= 0 ? gain
                     : std::max(gain, kWarmUpGain * WeightedSeconds(task) / (left * states[index].cost));
  }

  void SwitchTo(RunningTask& task, TaskStage stage) {
    task.stage = stage;
    if (current_ == &task) return;
    current_ = &task;
    task.tuner.Begin();
  }

  // Runs one turn of a task and keeps the accounts. Returns the trials made.
  template <typename MakeTrials>
  int TakeTurn(RunningTask& task, TaskStage stage, MakeTrials make_trials) {
    SwitchTo(task, stage);
    const double begin = Elapsed();
    const int trials = make_trials();
    task.seconds += Elapsed() - begin;
    turn_seconds_ += Elapsed() - begin;
    trials_measured_ += trials;
    ReportProgress();
    return trials;
  }

  void Search() {
    while (!Interrupted()) {
      const double search_end =
          options_.seconds_budget - std::min(FinishSeconds(), kLargestReserve * options_.seconds_budget);
      const int trials_left = SearchTrialsLeft();
      if (Elapsed() >= search_end) out_of_time_ = true;
      if (out_of_time_ || trials_left <= 0) return;
      const std::optional<size_t> next = scheduler_.Next(States());
      if (!next) return;
      RunningTask& task = tasks_[*next];
      const Turn turn = {std::min(TurnTrials(task, *next), trials_left), StopAt(TurnEnd(task, search_end))};
      TakeTurn(task, TaskStage::kSearch, [&] { return task.tuner.Search(turn); });
    }
  }

  // A first turn leaves something for the tasks that had none yet.
  double TurnEnd(const RunningTask& task, double search_end) const {
    if (task.tuner.trials_measured() > 0) return search_end;
    const auto waiting = std::count_if(tasks_.begin(), tasks_.end(), [](const RunningTask& other) {
      return other.open() && other.tuner.trials_measured() == 0;
    });
    return Elapsed() + (search_end - Elapsed()) / static_cast<double>(waiting);
  }

  int TurnTrials(const RunningTask& task, size_t index) const {
    const int most = scheduler_.tasks()[index].most_trials - task.tuner.trials();
    int batch = task.tuner.request().options.batch;
    // Few trials a task: all tasks get their first turn before they run out.
    if (counted()) batch = std::min(batch, std::max(1, options_.trials - LayoutTrials(task)));
    return std::min(batch, most);
  }

  // A task without any time cannot be planned with, nor with one template alone where it is forbidden later:
  // it gets a few trials whatever the budget says.
  void Rescue() {
    for (RunningTask& task : tasks_) {
      if (!task.open() || !IsWanting(task) || Interrupted()) continue;
      const Turn turn = {kRescueTrials, [&] { return Interrupted() || !IsWanting(task); }};
      TakeTurn(task, TaskStage::kSearch, [&] { return task.tuner.Search(turn); });
    }
  }

  bool IsWanting(const RunningTask& task) const {
    if (task.best_seconds() == 0) return task.tuner.trials_measured() < kRescueTrials;
    return out_of_time_ && task.tuner.templates_tried() < task.tuner.LeastTemplates();
  }

  // Where the time is short, or ample, every task's share is stretched alike.
  void Finish() {
    for (RunningTask& task : tasks_) {
      if (!task.open()) continue;
      if (Interrupted()) return;
      if (IsHopeless(task)) {
        task.stage = TaskStage::kDone;
        continue;
      }
      const double stretch = (options_.seconds_budget - Elapsed()) / std::max(FinishSeconds(), 1e-9);
      const double layouts_end = Elapsed() + Stretched(LayoutSeconds(task), stretch);
      const double retime_end = layouts_end + Stretched(RetimingSeconds(task), stretch);
      CoverLayouts(task, layouts_end);
      SwitchTo(task, TaskStage::kRetime);
      ReportProgress();
      task.tuner.Retime(StopAt(std::min(retime_end, options_.seconds_budget)));
      if (Interrupted()) return;
      task.stage = TaskStage::kDone;
      ReportProgress();
    }
  }

  static double Stretched(double seconds, double factor) {
    return std::isfinite(factor) ? seconds * std::max(0.0, factor) : factor;
  }

  void CoverLayouts(RunningTask& task, double end) {
    int left = std::min(LayoutTrials(task), TrialsLeft());
    const int batch = task.tuner.request().options.batch;
    const auto turns = [&](TaskStage stage, auto&& make_trials) {
      while (left > 0) {
        const Turn turn = {std::min(left, batch), StopAt(end)};
        const int made = TakeTurn(task, stage, [&] { return make_trials(turn); });
        if (made == 0) break;
        left -= made;
      }
    };
    turns(TaskStage::kLayouts, [&](const Turn& turn) { return task.tuner.CoverLayouts(turn); });
    // What the layouts had no use for.
    if (counted()) turns(TaskStage::kSearch, [&](const Turn& turn) { return task.tuner.Search(turn); });
  }

  void ReportProgress() {
    if (!sinks_.on_progress) return;
    NetworkProgress progress;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const RunningTask& task = tasks_[i];
      if (&task == current_) progress.task = i;
      int failures = 0;
      for (const auto& [status, count] : task.tuner.failures()) failures += count;
      progress.tasks.push_back({task.stage, task.best_seconds(), task.tuner.trials_measured(), failures});
    }
    progress.network_seconds = TotalSeconds();
    progress.trials_measured = trials_measured_;
    progress.elapsed_seconds = Elapsed();
    progress.left_seconds = LeftSeconds();
    sinks_.on_progress(progress);
  }

  double LeftSeconds() const {
    if (std::isfinite(options_.seconds_budget)) return std::max(0.0, options_.seconds_budget - Elapsed());
    const double each = trials_measured_ > 0 ? turn_seconds_ / trials_measured_ : kUnknownTrialSeconds;
    return SearchTrialsLeft() * each + FinishSeconds();
  }

  const NetworkTuneOptions options_;
  const NetworkSinks& sinks_;
  const double start_ = NowSeconds();
  std::deque<RunningTask> tasks_;
  TaskScheduler scheduler_;
  RunningTask* current_ = nullptr;
  int trials_measured_ = 0;
  double turn_seconds_ = 0;
  bool interrupted_ = false, out_of_time_ = false;
};

std::string_view TaskStageName(TaskStage stage) {
  switch (stage) {
    case TaskStage::kWaiting:
      return "";
    case TaskStage::kSearch:
      return "search";
    case TaskStage::kLayouts:
      return "layouts";
    case TaskStage::kRetime:
      return "re-timing";
    case TaskStage::kDone:
      return "done";
    case TaskStage::kKnown:
      return "known";
  }
  return "unknown";
}

NetworkResult TuneNetwork(const std::vector<NetworkTask>& tasks, const NetworkTuneOptions& options,
                          Measurer& measurer, const NetworkSinks& sinks) {
  return NetworkTuner::Impl(tasks, options, measurer, sinks).Run();
}

NetworkTuner::NetworkTuner(const std::vector<NetworkTask>& tasks, const NetworkTuneOptions& options,
                           Measurer& measurer, const NetworkSinks& sinks)
    : impl_(std::make_unique<Impl>(tasks, options, measurer, sinks)) {}
NetworkTuner::~NetworkTuner() = default;

std::optional<TuningOffer> NetworkTuner::BestOffer(std::span<const double> layout_gains) {
  return impl_->BestOffer(layout_gains);
}
int NetworkTuner::Take(const TuningOffer& offer, double end) { return impl_->Take(offer, end); }
double NetworkTuner::NetworkSeconds() const { return impl_->TotalSeconds(); }
std::vector<double> NetworkTuner::BestSeconds() const { return impl_->BestSeconds(); }
NetworkResult NetworkTuner::Result() const { return impl_->Result(); }

}  // namespace tilesmith
