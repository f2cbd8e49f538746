#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "graph_tuner/planner/network_run.h"
#include "graph_tuner/planner/optimize.h"
#include "layouts/base/error.h"

namespace tilesmith {
namespace {

// Each type by itself, and then what they found together.
class MixedOptimizer {
 public:
  MixedOptimizer(const OptimizeRequest& request, const WorkSinks& sinks, const ShowOptimizing& on_progress)
      : request_(request), sinks_(sinks), on_progress_(on_progress) {}

  OptimizedModel Run() {
    std::vector<Precision> types = {Precision::kF32, Precision::kInt8};
    if (HasTemplates(request_.machine->target(), DataType::kBf16))
      types.insert(types.begin() + 1, Precision::kBf16);
    const double end = request_.begin + request_.seconds, mixing = end - kForMixing * request_.seconds;
    Tune(Precision::kF32, ShareUntil(mixing, types.size()));
    if (!optimized_.stopped) TimeARun();
    if (optimized_.stopped) return Done();
    double others = 0;
    for (const Precision type : types) others += LeastOf(type);
    const bool mixes = left() >= MixingSeconds() + others;
    if (!mixes && SecondsOf(optimized_.plans) == 0) {
      sinks_.Warn("there is no time to tune in other types than f32");
      GoOnInFloats();
      types.clear();
    }
    for (size_t i = 1; i < types.size() && !optimized_.stopped; ++i)
      if (HasTimeFor(types[i])) Tune(types[i], ShareUntil(mixes ? mixing : end, types.size() - i));
    if (!optimized_.stopped) left() >= MixingSeconds() ? Mix() : TakeFastest();
    return Done();
  }

 private:
  static constexpr double kForMixing = 0.5;

  OptimizedModel Done() {
    optimized_.elapsed_seconds = NowSeconds() - request_.begin;
    return std::move(optimized_);
  }

  // 0 where none has run.
  static double SecondsOf(const std::vector<OptimizedPlan>& plans) {
    double sum = 0;
    for (const OptimizedPlan& plan : plans) sum += plan.measurement.seconds;
    return sum;
  }

  double left() const { return request_.begin + request_.seconds - NowSeconds(); }

  // The first of `types` that are to be tuned by `end` gets so many seconds.
  static double ShareUntil(double end, size_t types) {
    return std::max(0.0, end - NowSeconds()) / static_cast<double>(types);
  }

  // The seconds of work that takes so many times as long as loading the model, and so many runs.
  double Least(double loads, double runs) const { return loads * load_seconds_ + runs * run_seconds_; }
  double LeastOf(Precision precision) const {
    if (precision == Precision::kF32) return 0;
    return precision == Precision::kInt8 ? Least(8, 50) : Least(3, 10);
  }
  bool HasTimeFor(Precision precision) {
    if (left() >= LeastOf(precision)) return true;
    sinks_.Warn(fmt::format("there is no time to tune in {}", PrecisionName(precision)));
    return false;
  }
  // Plans are made and compiled, and each is run by turns and for its error.
  double MixingSeconds() const { return Least(20, 120); }

  // The plans in f32 run as they are, which they may not have done yet.
  void TimeARun() try {
    const PinnedTeam team(request_.machine);
    for (size_t i = 0; i < request_.sizes.size(); ++i) {
      const double began = NowSeconds();
      Graph graph = request_.sizes[i]->Load(nullptr);
      load_seconds_ += NowSeconds() - began;
      std::vector<Tensor> inputs = SeededInputs(graph, request_.seed);
      NetworkRun run(std::move(graph), optimized_.plans[i].plan, request_.machine, std::move(inputs),
                     sinks_.stop);
      run_seconds_ += run.Time(2).median;
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInterrupted) throw;
    optimized_.stopped = true;
  }

  // What was found in f32 so far has not even run.
  void GoOnInFloats() {
    optimized_.rows.clear();
    found_.clear();
    Tune(Precision::kF32, std::max(0.0, left()), true);
  }

  // The plans become those of the type that ran fastest by itself; under a limit on errors, which nobody has
  // measured, they stay in f32.
  void TakeFastest() {
    std::string type(PrecisionName(Precision::kF32));
    for (auto& [name, plans] : by_type_) {
      const double took = SecondsOf(plans);
      if (request_.max_output_error || !(took > 0) || !(took < SecondsOf(optimized_.plans))) continue;
      optimized_.plans = std::move(plans);
      type = name;
    }
    if (!request_.keeps_plan) request_.keep(Plans());
    sinks_.Warn("there was no time to mix types: " +
                (request_.keeps_plan ? "the plan stays what it was" : "all is in " + type));
  }

  std::vector<Plan> Plans() const {
    std::vector<Plan> plans;
    plans.reserve(optimized_.plans.size());
    for (const OptimizedPlan& optimized : optimized_.plans) plans.push_back(optimized.plan);
    return plans;
  }

  // Tunes for so many seconds; `again` says that it was tuned before, for too short a time.
  void Tune(Precision precision, double seconds, bool again = false) {
    const bool is_first = precision == Precision::kF32;
    OptimizeRequest one = request_;
    one.planning.precision = precision;
    one.begin = NowSeconds();
    one.seconds = seconds;
    one.known_plans = nullptr;
    // What an earlier run has mixed stays until there is another.
    const bool aside = !is_first || request_.keeps_plan;
    if (aside) one.keep = [](const std::vector<Plan>&) {};
    if (!aside && again) one.known_plans = [&](std::span<const Graph>) { return Plans(); };
    OptimizedModel of_type;
    try {
      of_type = OptimizeInOneType(one, false, sinks_, on_progress_);
    } catch (const Error& error) {
      if (precision != Precision::kInt8 || error.code() != ErrorCode::kBadModel) throw;
      return;  // what cannot be quantised; the planner says so
    }
    for (const OptimizedPlan& found : of_type.plans)
      found_.push_back({fmt::format("tuned in {}", PrecisionName(precision)), found.plan});
    optimized_.stopped = of_type.stopped;
    optimized_.disturbance += of_type.disturbance;
    optimized_.database_path = of_type.database_path;
    optimized_.rows.insert(optimized_.rows.end(), std::make_move_iterator(of_type.rows.begin()),
                           std::make_move_iterator(of_type.rows.end()));
    optimized_.spent.insert(optimized_.spent.end(), of_type.spent.begin(), of_type.spent.end());
    if (!is_first) {
      by_type_.emplace_back(PrecisionName(precision), std::move(of_type.plans));
      return;
    }
    optimized_.plans = std::move(of_type.plans);
    if (aside) return;
    if (!again) optimized_.first_plan_seconds = of_type.first_plan_seconds;
    optimized_.plans_written += of_type.plans_written;
  }

  void Mix() {
    PlanRequest mixing;
    mixing.machine = request_.machine;
    mixing.tuning = request_.planning;
    mixing.tuning.allow_defaults = true;
    mixing.hurried = true;
    mixing.begin = NowSeconds();
    // What it ends with takes a while.
    mixing.time_budget = std::max(0.0, left() - MixingSeconds() / 2);
    mixing.max_weight_bytes = request_.max_weight_bytes;
    mixing.max_output_error = request_.max_output_error;
    mixing.known = found_;
    mixing.open_costs = request_.open_costs_to_mix;
    try {
      const std::vector<Record> log = request_.load_log();
      mixing.log = &log;
      PlanSizes(
          mixing, request_.sizes, request_.keep, sinks_,
          [&](size_t size, const PlannedNetwork& planned) { Take(optimized_.plans.at(size), planned); });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInterrupted) throw;
      optimized_.stopped = true;
    }
    optimized_.spent.emplace_back("mixing", NowSeconds() - mixing.begin);
  }

  // In place of the plan in f32.
  void Take(OptimizedPlan& plan, const PlannedNetwork& tuned) {
    plan.plan = tuned.refined.plan;
    plan.measurement = tuned.refined.check;
    plan.solutions = static_cast<int>(tuned.refined.rounds.size());
    const bool both_ran = plan.measurement.seconds > 0 && plan.untuned.seconds > 0;
    plan.seconds_saved = both_ran ? plan.untuned.seconds - plan.measurement.seconds : 0;
    if (tuned.output_error) optimized_.differences.push_back({.error = *tuned.output_error});
    optimized_.types.push_back(tuned.types);
    optimized_.stopped |= tuned.stopped;
    if (optimized_.plans_written++ == 0) optimized_.first_plan_seconds = NowSeconds() - request_.begin;
  }

  const OptimizeRequest& request_;
  const WorkSinks& sinks_;
  const ShowOptimizing& on_progress_;
  std::vector<RivalPlan> found_;
  std::vector<std::pair<std::string, std::vector<OptimizedPlan>>> by_type_;  // but for f32
  double load_seconds_ = 0, run_seconds_ = 0;                                // of the network in f32
  OptimizedModel optimized_;
};

}  // namespace

OptimizedModel OptimizeMixed(const OptimizeRequest& request, const WorkSinks& sinks,
                             const ShowOptimizing& on_progress) {
  return MixedOptimizer(request, sinks, on_progress).Run();
}

}  // namespace tilesmith
