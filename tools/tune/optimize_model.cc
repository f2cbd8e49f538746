#include "tools/tune/optimize_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/planner/network_types.h"
#include "graph_tuner/planner/plan_runs.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "layouts/base/text_file.h"
#include "tools/cli/output_file.h"
#include "tools/cli/report.h"
#include "tools/quantize/in_place.h"
#include "tools/tune/tuning_tasks.h"
#include "tuner/measure/process_measurer.h"

namespace tilesmith {
namespace {

// What a session takes, for each plan in it.
constexpr double kShareOfARun = 0.01, kMinPlanSeconds = 0.05, kMaxPlanSeconds = 0.5;
constexpr int kBatch = 8;  // trials of a turn
constexpr int kRetimed = 6;

TuneModelRequest TuningOf(const OptimizeModelRequest& request, DevicePtr machine) {
  TuneModelRequest tuning;
  tuning.machine = std::move(machine);
  tuning.targets = LoadTargetsToTune({.model = request.arguments.model, .suite = ""});
  if (!tuning.targets.is_network())
    throw Error(ErrorCode::kUsage,
                fmt::format("{} is a convolution, not a network", request.arguments.model.model));
  tuning.log_path = request.arguments.log_path;
  tuning.existing_log = request.existing_log;
  tuning.time_budget = request.seconds;
  tuning.begin = request.begin;
  tuning.baselines = request.baselines;
  tuning.options.batch = kBatch;
  tuning.options.retime_top = kRetimed;
  tuning.seed = request.seed;
  tuning.accuracy = request.arguments.tuning.accuracy;
  tuning.conditions = request.conditions;
  tuning.fusion = !request.arguments.no_fusion;
  tuning.precision = request.arguments.machine.precision;
  tuning.suggest_shipped = request.shipped;
  tuning.use_database = request.use_database;
  tuning.database_path = request.database_path;
  return tuning;
}

bool HaveSameNodes(const Plan& plan, const Graph& graph) {
  std::vector<std::string> of_plan, of_graph;
  for (const NodePlan& node : plan.nodes) of_plan.push_back(node.node);
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const std::string_view type = graph.node(id).op->Type();
    if (type != "Constant" && type != "Input") of_graph.push_back(graph.node(id).name);
  }
  return of_plan == of_graph;
}

class ModelOptimizer {
 public:
  // `compares`: whether it is to be told what the types do to the outputs.
  ModelOptimizer(const OptimizeModelRequest& request, DevicePtr machine, bool compares,
                 const WorkSinks& sinks, const ShowOptimizing& on_progress)
      : request_(request),
        sinks_(sinks),
        on_progress_(on_progress),
        limit_{sinks.stop, request.begin + request.seconds},
        tuning_request_(TuningOf(request, std::move(machine))),
        machine_(tuning_request_.machine),
        compares_(compares && !IsF32(tuning_request_.precision) && machine_->target().device == kCpuDevice),
        tuning_(tuning_request_, sinks),
        measurer_(WorkerFor(request.worker, machine_->target())) {}

  OptimizedModel Run() {
    ReadKeptPlans();
    std::vector<NetworkTask> tasks = tuning_.Make();
    records_ = tuning_.known_records();
    costs_ = OpenMachinesCosts();
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
  std::unique_ptr<CostSource> OpenMachinesCosts() const {
    GraphTuningArguments arguments = request_.arguments;
    if (const auto database = tuning_.database_path())
      arguments.machine_costs_path = MachineCostsPath(*database);
    return OpenCosts(arguments, machine_, sinks_);
  }

  NetworkOptimization Work(NetworkTuner& tuner) {
    NetworkOptimization work;
    for (const Graph& graph : tuning_.graphs()) work.graphs.push_back(&graph);
    best_.resize(work.graphs.size());
    untuned_seconds_.resize(work.graphs.size());
    best_seconds_.resize(work.graphs.size());
    work.options = TuningOptions(request_.arguments, machine_, sinks_);
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

  void ReadKeptPlans() {
    if (!GoesOnWithPlan(request_)) return;
    for (Plan& plan : ReadPlans(request_.plan_path)) {
      const auto graph = std::ranges::find(tuning_.graphs(), plan.graph_hash, GraphHash);
      if (graph == tuning_.graphs().end()) {
        KeepOther(std::move(plan));
        continue;
      }
      try {
        CheckPlan(plan, *graph, machine_->target(), machine_->threads());
        known_plans_.push_back(std::move(plan));
      } catch (const Error& error) {
        sinks_.Warn(fmt::format("{} is made anew: {}", request_.plan_path, error.what()));
      }
    }
  }

  // Plans of one file are of one model: where either is quantised they may not be.
  void KeepOther(Plan plan) {
    const Graph& graph = tuning_.graphs().front();
    RequireNetwork(request_.plan_path, graph.name(), plan);
    if (!plan.quantization && !request_.arguments.model.quantization && HaveSameNodes(plan, graph))
      return other_plans_.push_back(std::move(plan));
    sinks_.Warn(fmt::format("{}: a plan for another size, type or version of the network is not kept",
                            request_.plan_path));
  }

  void WriteFile() const {
    std::vector<Plan> plans = best_;
    plans.insert(plans.end(), other_plans_.begin(), other_plans_.end());
    WritePlans(request_.plan_path, plans);
  }

  void Take(const Record& record) {
    tuning_.Log(record);
    records_.push_back(record);
  }

  std::vector<PlanMeasurement> Measure(size_t graph, const std::vector<const Plan*>& plans) {
    const double each = std::clamp(kShareOfARun * request_.seconds, kMinPlanSeconds, kMaxPlanSeconds);
    tuning_.watch().Skip();
    const Disturbance before = tuning_.watch().total();
    const PlanRuns where = {tuning_.graphs()[graph], machine_, limit_, [this] {
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

  // The file has plans for all sizes from the time on when there is one for each.
  void Keep(size_t graph, const Plan& plan) {
    best_[graph] = plan;
    best_[graph].quantization = request_.arguments.model.quantization;
    const bool ran = !plan.corrections.empty();
    if (ran) best_seconds_[graph] = plan.predicted_seconds;
    if (std::ranges::any_of(best_, [](const Plan& one) { return one.nodes.empty(); })) return;
    WriteFile();
    if (optimized_.plans_written++ == 0) optimized_.first_plan_seconds = NowSeconds() - request_.begin;
  }

  void Write(std::vector<OptimizedPlan> plans) {
    for (size_t i = 0; i < plans.size(); ++i) {
      plans[i].plan.quantization = request_.arguments.model.quantization;
      best_[i] = plans[i].plan;
    }
    WriteFile();
    optimized_.plans = std::move(plans);
  }

  // What the network gives in floats, before anything is tuned: what is compared with it at the end takes
  // about as long, which is returned. Nothing is compared if that would be most of the time.
  double OpenErrors() {
    if (!compares_) return 0;
    Tell("what the network gives in f32");
    const double began = NowSeconds(), had = limit_.left();
    for (const ModelOptions& size : SizesOf(request_.arguments.model)) {
      floats_.push_back(OpenFloats(ModelNetwork(size, machine_), machine_));
      const double each = (NowSeconds() - began) / static_cast<double>(floats_.size());
      const double all = each * static_cast<double>(tuning_.graphs().size());
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
      optimized_.differences.push_back(floats_[i].errors.Of(tuning_.graphs()[i], best_[i]));
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

  const OptimizeModelRequest& request_;
  const WorkSinks& sinks_;
  const ShowOptimizing& on_progress_;
  const WorkLimit limit_;
  const TuneModelRequest tuning_request_;
  const DevicePtr machine_;
  const bool compares_;
  std::vector<FloatNetwork> floats_;  // of each size
  TuningTasks tuning_;
  ProcessMeasurer measurer_;
  std::vector<Record> records_;
  std::unique_ptr<CostSource> costs_;
  std::vector<Plan> best_;  // for each graph
  // The file held these: some are for the graphs on this machine with these threads, others for other sizes.
  std::vector<Plan> known_plans_, other_plans_;
  std::vector<double> untuned_seconds_, best_seconds_;
  OptimizeProgress progress_;
  OptimizedModel optimized_;
};

}  // namespace

bool GoesOnWithPlan(const OptimizeModelRequest& request) {
  return request.existing_log == ExistingLog::kResume && FileExists(request.plan_path);
}

void RequireNetwork(const std::string& path, const std::string& network, const Plan& plan) {
  if (plan.network == network) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("{} is a plan for network \"{}\", not for \"{}\": name another file, or remove it",
                          path, plan.network, network));
}

OptimizedModel OptimizeInOneType(OptimizeModelRequest request, bool compares, const WorkSinks& sinks,
                                 const ShowOptimizing& on_progress) {
  GraphTuningArguments& arguments = request.arguments;
  DevicePtr machine = OpenMachine(arguments.machine);
  const double began = NowSeconds();
  QuantizeInPlace(arguments.machine.precision, machine, sinks, &arguments.model);
  const double calibrating = NowSeconds() - began;
  const double opened = NowSeconds();
  ModelOptimizer optimizer(request, std::move(machine), compares, sinks, on_progress);
  const double loading = NowSeconds() - opened;
  OptimizedModel optimized = optimizer.Run();
  optimized.spent.emplace(optimized.spent.begin(), "loading", loading);
  if (arguments.model.quantization)
    optimized.spent.emplace(optimized.spent.begin(), "calibrating", calibrating);
  return optimized;
}

namespace {

// Says where the time went that there was not.
void WarnIfLate(const OptimizeModelRequest& request, const OptimizedModel& optimized,
                const WorkSinks& sinks) {
  constexpr double kMost = 1.1, kSecond = 1;
  if (optimized.elapsed_seconds <= std::max(kMost * request.seconds, request.seconds + kSecond)) return;
  std::string text;
  for (const auto& [what, seconds] : optimized.spent)
    text += fmt::format(", {} {}", what, DurationText(seconds));
  sinks.Warn(fmt::format("{} is too little for this model, it took {}{}", DurationText(request.seconds),
                         DurationText(optimized.elapsed_seconds), text));
}

}  // namespace

std::string ProgressText(const OptimizeProgress& at) {
  std::string text = fmt::format("{} plan{} written", at.plans, at.plans == 1 ? "" : "s");
  if (at.best_seconds > 0)
    text += fmt::format(", {} ms, at first {} ms", MillisecondsText(at.best_seconds),
                        MillisecondsText(at.untuned_seconds));
  return at.stage.empty() ? text : text + "; " + at.stage;
}

OptimizedModel OptimizeModel(const OptimizeModelRequest& request, const WorkSinks& sinks,
                             const ShowOptimizing& on_progress) {
  OptimizeModelRequest complete = request;
  GraphTuningArguments& arguments = complete.arguments;
  if (arguments.log_path.empty()) arguments.log_path = LogPathBeside(request.plan_path);
  RequireDifferent({request.plan_path, arguments.log_path, arguments.costs_path});
  RequireReplaceable(request.plan_path, OutputFormat::kPlan,
                     {arguments.log_path, arguments.costs_path, arguments.model.model});
  RequireReplaceable(arguments.log_path, OutputFormat::kLog, {arguments.model.model});
  RequireReplaceable(arguments.costs_path, OutputFormat::kCosts);
  const Precision precision = request.arguments.machine.precision;
  const bool mixes = precision == Precision::kMixed;
  if (!mixes && request.max_output_error)
    throw Error(ErrorCode::kUsage, fmt::format("{} is for {} mixed, not {}", settings::kMaxOutputError,
                                               settings::kPrecision, PrecisionName(precision)));
  if (mixes && request.arguments.machine.target != kCpuDevice)
    throw Error(ErrorCode::kUsage, "optimize mixes types on CPUs; on a GPU tune, then graph-tune");
  if (mixes) TakeSizesOfSamples(&arguments.model);
  OptimizedModel optimized = mixes ? OptimizeMixed(complete, sinks, on_progress)
                                   : OptimizeInOneType(complete, true, sinks, on_progress);
  if (!optimized.stopped) WarnIfLate(complete, optimized, sinks);
  return optimized;
}

}  // namespace tilesmith
