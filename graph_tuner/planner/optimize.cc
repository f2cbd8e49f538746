#include "graph_tuner/planner/optimize.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

// What a session takes, for each plan in it.
constexpr double kShareOfARun = 0.01, kMinPlanSeconds = 0.05, kMaxPlanSeconds = 0.5;
constexpr int kTrialsOfATurn = 8;
constexpr int kRetimed = 6;

class TypeOptimizer {
 public:
  // `compares`: whether it is to be told what the types do to the outputs. `quantization` is the request's,
  // or what was calibrated.
  TypeOptimizer(const OptimizeRequest& request, QuantizationPtr quantization, bool compares,
                const WorkSinks& sinks, const ShowOptimizing& on_progress)
      : request_(request),
        quantization_(std::move(quantization)),
        sinks_(sinks),
        on_progress_(on_progress),
        limit_{sinks.stop, request.begin + request.seconds},
        machine_(request.machine),
        compares_(compares && !IsF32(request.planning.precision) && machine_->target().device == kCpuDevice),
        graphs_(LoadSizes()),
        tuning_(OpenTuning(), sinks),
        measurer_(request.worker) {}

  OptimizedModel Run() {
    if (request_.known_plans) known_plans_ = request_.known_plans(graphs_);
    std::vector<NetworkTask> tasks = tuning_.Make();
    records_ = tuning_.known_records();
    costs_ = request_.open_costs(database_);
    const NetworkSinks network_sinks = {.on_record = [this](const Record& record) { Take(record); },
                                        .on_progress = [this](const NetworkProgress& at) { Show(at); },
                                        .should_stop = [this] { return IsStopped(sinks_.stop); }};
    NetworkTuneOptions options;
    options.trials = 0;
    options.seed = request_.seed;
    NetworkTuner tuner(tasks, options, measurer_, network_sinks);
    NetworkOptimization work = Work(tuner);
    work.end -= OpenErrors();
    for (const NetworkTask& task : tasks) work.workloads.push_back(task.request.workload);
    tuning_.watch().Skip();
    OptimizedNetwork optimized = OptimizeNetwork(work);
    Write(std::move(optimized.plans));
    optimized_.spent.emplace_back("the first plan", optimized_.first_plan_seconds);
    if (!optimized.stopped) CompareOutputs();
    tuning_.Finish(tuner.Result());
    optimized_.rows = std::move(tuning_.rows());
    optimized_.database_path = tuning_.database_path();
    optimized_.elapsed_seconds = NowSeconds() - request_.begin;
    optimized_.disturbance = tuning_.watch().total();
    optimized_.stopped = optimized.stopped;
    return std::move(optimized_);
  }

 private:
  std::vector<Graph> LoadSizes() const {
    std::vector<Graph> graphs;
    graphs.reserve(request_.sizes.size());
    for (const NetworkSource* size : request_.sizes) graphs.push_back(size->Load(quantization_));
    return graphs;
  }

  TuningRequest OpenTuning() {
    TuningRequest tuning;
    tuning.machine = machine_;
    tuning.time_budget = request_.seconds;
    tuning.begin = request_.begin;
    tuning.options.batch = kTrialsOfATurn;
    tuning.options.retime_top = kRetimed;
    tuning.seed = request_.seed;
    tuning.accuracy = request_.planning.accuracy;
    tuning.conditions = request_.conditions;
    tuning.precision = request_.planning.precision;
    tuning.fusion = request_.planning.fusion;
    tuning.suggest_shipped = request_.shipped;
    tuning.graphs = graphs_;
    tuning.tasks = TasksOf(graphs_);
    if (tuning.tasks.empty())
      throw Error(ErrorCode::kBadModel,
                  fmt::format("{} has no convolutions to tune", graphs_.front().name()));
    CheckTuning(&tuning);
    opened_ = request_.open_tuning(&tuning);
    database_ = tuning.database;
    return tuning;
  }

  NetworkOptimization Work(NetworkTuner& tuner) {
    NetworkOptimization work;
    for (const Graph& graph : graphs_) work.graphs.push_back(&graph);
    best_.resize(work.graphs.size());
    untuned_seconds_.resize(work.graphs.size());
    best_seconds_.resize(work.graphs.size());
    work.options = request_.planning;
    CheckAccuracyLimits(work.options.accuracy);
    work.max_weight_bytes = request_.max_weight_bytes;
    work.costs = costs_.get();
    work.tuner = &tuner;
    work.records = &records_;
    work.known_plans = known_plans_;
    work.end = limit_.end;
    work.measure = [this](size_t graph, const std::vector<const Plan*>& plans) {
      return Measure(graph, plans);
    };
    work.get_ready = [this] { return std::make_shared<PinnedTeam>(machine_); };
    work.keep = [this](size_t graph, const Plan& plan) { Keep(graph, plan); };
    work.on_stage = [this](const std::string& stage) { Tell(stage); };
    work.should_stop = [this] { return IsStopped(sinks_.stop); };
    return work;
  }

  void Take(const Record& record) {
    tuning_.Log(record);
    records_.push_back(record);
  }

  std::vector<PlanMeasurement> Measure(size_t graph, const std::vector<const Plan*>& plans) {
    const double each = std::clamp(kShareOfARun * request_.seconds, kMinPlanSeconds, kMaxPlanSeconds);
    tuning_.watch().Skip();
    const Disturbance before = tuning_.watch().total();
    const PlanRuns where = {graphs_[graph], machine_, limit_, [this] {
                              tuning_.watch().EndInterval();
                              Tell(progress_.stage);
                            }};
    std::vector<PlanMeasurement> measurements = MeasurePlans(where, plans, each);
    tuning_.watch().EndInterval();
    for (PlanMeasurement& measurement : measurements)
      measurement.disturbed_share = (tuning_.watch().total() - before).share();
    if (untuned_seconds_[graph] == 0) untuned_seconds_[graph] = measurements.front().seconds;
    return measurements;
  }

  // Nothing is kept before there is a plan for each size.
  void Keep(size_t graph, const Plan& plan) {
    best_[graph] = plan;
    best_[graph].quantization = quantization_;
    const bool ran = !plan.corrections.empty();
    if (ran) best_seconds_[graph] = plan.predicted_seconds;
    if (std::ranges::any_of(best_, [](const Plan& one) { return one.nodes.empty(); })) return;
    request_.keep(best_);
    if (optimized_.plans_written++ == 0) optimized_.first_plan_seconds = NowSeconds() - request_.begin;
  }

  void Write(std::vector<OptimizedPlan> plans) {
    for (size_t i = 0; i < plans.size(); ++i) {
      plans[i].plan.quantization = quantization_;
      best_[i] = plans[i].plan;
    }
    request_.keep(best_);
    optimized_.plans = std::move(plans);
  }

  // What the network gives in floats, before anything is tuned: what is compared with it at the end takes
  // about as long, which is returned. Nothing is compared if that would be most of the time.
  double OpenErrors() {
    if (!compares_) return 0;
    Tell("what the network gives in f32");
    const double began = NowSeconds(), had = limit_.left();
    for (const NetworkSource* size : request_.sizes) {
      floats_.push_back(OpenFloats(*size, machine_));
      const double each = (NowSeconds() - began) / static_cast<double>(floats_.size());
      const double all = each * static_cast<double>(graphs_.size());
      if (2 * all <= had) continue;
      floats_.clear();
      sinks_.Warn("there is no time to measure what the types do to the outputs");
      break;
    }
    optimized_.spent.emplace_back("the outputs in f32", NowSeconds() - began);
    return floats_.empty() ? 0 : NowSeconds() - began;
  }

  void CompareOutputs() {
    if (floats_.empty()) return;
    Tell("what the types do to the outputs");
    const double began = NowSeconds();
    for (size_t i = 0; i < floats_.size(); ++i)
      optimized_.differences.push_back(floats_[i].errors.Of(graphs_[i], best_[i]));
    optimized_.spent.emplace_back("the outputs in other types", NowSeconds() - began);
  }

  void Show(const NetworkProgress& at) {
    tuning_.rows()[at.task].disturbance += tuning_.watch().EndInterval(measurer_.worker_pid());
    progress_.tuning = at;
    Tell("");
  }

  void Tell(const std::string& stage) {
    progress_.stage = stage;
    if (!on_progress_ || progress_.tuning.tasks.empty()) return sinks_.Stage(stage);
    progress_.tuning.elapsed_seconds = NowSeconds() - request_.begin;
    progress_.tuning.left_seconds = limit_.left();
    progress_.plans = optimized_.plans_written;
    progress_.untuned_seconds = SumOf(untuned_seconds_);
    progress_.best_seconds = SumOf(best_seconds_);
    on_progress_(tuning_.rows(), progress_);
  }

  // 0 where one of them is.
  static double SumOf(const std::vector<double>& seconds) {
    double sum = 0;
    for (double one : seconds) {
      if (one == 0) return 0;
      sum += one;
    }
    return sum;
  }

  const OptimizeRequest& request_;
  const QuantizationPtr quantization_;
  const WorkSinks& sinks_;
  const ShowOptimizing& on_progress_;
  const WorkLimit limit_;
  const DevicePtr machine_;
  const bool compares_;
  std::vector<FloatNetwork> floats_;  // of each size
  const std::vector<Graph> graphs_;
  std::shared_ptr<void> opened_;
  const TuningDatabase* database_ = nullptr;
  TuningTasks tuning_;
  ProcessMeasurer measurer_;
  std::vector<Record> records_;
  std::unique_ptr<CostSource> costs_;
  std::vector<Plan> best_;         // for each graph
  std::vector<Plan> known_plans_;  // for some of them
  std::vector<double> untuned_seconds_, best_seconds_;
  OptimizeProgress progress_;
  OptimizedModel optimized_;
};

// Says where the time went that there was not.
void WarnIfLate(const OptimizeRequest& request, const OptimizedModel& optimized, const WorkSinks& sinks) {
  constexpr double kMost = 1.1, kSecond = 1;
  if (optimized.elapsed_seconds <= std::max(kMost * request.seconds, request.seconds + kSecond)) return;
  std::string text;
  for (const auto& [what, seconds] : optimized.spent)
    text += fmt::format(", {} {}", what, DurationText(seconds));
  sinks.Warn(fmt::format("{} is too little for this model, it took {}{}", DurationText(request.seconds),
                         DurationText(optimized.elapsed_seconds), text));
}

}  // namespace

OptimizedModel OptimizeInOneType(const OptimizeRequest& request, bool compares, const WorkSinks& sinks,
                                 const ShowOptimizing& on_progress) {
  const double began = NowSeconds();
  QuantizationPtr quantization = request.quantization;
  if (request.planning.precision == Precision::kInt8 && !quantization)
    quantization = request.sizes.front()->Calibrate(sinks);
  const double opened = NowSeconds();
  TypeOptimizer optimizer(request, quantization, compares, sinks, on_progress);
  const double loading = NowSeconds() - opened;
  OptimizedModel optimized = optimizer.Run();
  optimized.spent.emplace(optimized.spent.begin(), "loading", loading);
  if (quantization) optimized.spent.emplace(optimized.spent.begin(), "calibrating", opened - began);
  return optimized;
}

OptimizedModel Optimize(const OptimizeRequest& request, const WorkSinks& sinks,
                        const ShowOptimizing& on_progress) {
  const bool mixes = request.planning.precision == Precision::kMixed;
  OptimizedModel optimized = mixes ? OptimizeMixed(request, sinks, on_progress)
                                   : OptimizeInOneType(request, true, sinks, on_progress);
  if (!optimized.stopped) WarnIfLate(request, optimized, sinks);
  return optimized;
}

}  // namespace tilesmith
