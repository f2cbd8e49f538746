#include "tools/tune/optimize_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "tools/cli/output_file.h"
#include "tools/cli/report.h"
#include "tools/network/plan_runs.h"
#include "tools/quantize/in_place.h"
#include "tools/tune/network_types.h"
#include "tools/tune/tuning_tasks.h"
#include "tools/tune/user_database.h"
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
  tuning.precision = ParsePrecision(request.arguments.machine.precision);
  tuning.suggest_shipped = request.shipped;
  tuning.use_database = request.use_database;
  tuning.database_path = request.database_path;
  return tuning;
}

bool GoesOnWithPlan(const OptimizeModelRequest& request) {
  return request.existing_log == ExistingLog::kResume && FileExists(request.plan_path);
}

// A plan file that is gone on with holds nothing of another network.
void RequireNetwork(const std::string& path, const std::string& network, const Plan& plan) {
  if (plan.network == network) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("{} is a plan for network \"{}\", not for \"{}\": name another file, or remove it",
                          path, plan.network, network));
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
  ModelOptimizer(const OptimizeModelRequest& request, DevicePtr machine, const WorkSinks& sinks,
                 const ShowOptimizing& on_progress)
      : request_(request),
        sinks_(sinks),
        on_progress_(on_progress),
        limit_{sinks.stop, request.begin + request.seconds},
        tuning_request_(TuningOf(request, std::move(machine))),
        machine_(tuning_request_.machine),
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
    for (const NetworkTask& task : tasks) work.workloads.push_back(task.request.workload);
    tuning_.watch().Skip();
    OptimizedNetwork optimized = OptimizeNetwork(work);
    Write(std::move(optimized.plans));
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

  void CompareOutputs() {
    if (tuning_request_.precision == Precision::kF32 || machine_->target().device != kCpuDevice) return;
    Tell("what the types do to the outputs");
    const std::vector<ModelOptions> sizes = SizesOf(request_.arguments.model);
    for (size_t i = 0; i < sizes.size(); ++i)
      optimized_.differences.push_back(
          OpenFloats(sizes[i], machine_).errors.Of(tuning_.graphs()[i], best_[i]));
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
  TuningTasks tuning_;
  ProcessMeasurer measurer_;
  std::vector<Record> records_;
  std::unique_ptr<CostSource> costs_;
  std::vector<Plan> best_;  // for each graph
  // Of the file as it was: those for the graphs on this machine with these threads, and for other sizes.
  std::vector<Plan> known_plans_, other_plans_;
  std::vector<double> untuned_seconds_, best_seconds_;
  OptimizeProgress progress_;
  OptimizedModel optimized_;
};

OptimizedModel OptimizeInOneType(OptimizeModelRequest request, const WorkSinks& sinks,
                                 const ShowOptimizing& on_progress) {
  GraphTuningArguments& arguments = request.arguments;
  DevicePtr machine = OpenMachine(arguments.machine);
  QuantizeInPlace(ParsePrecision(arguments.machine.precision), machine, sinks, &arguments.model);
  return ModelOptimizer(request, std::move(machine), sinks, on_progress).Run();
}

// Each type by itself, and then what they found together.
class MixedOptimizer {
 public:
  MixedOptimizer(const OptimizeModelRequest& request, const WorkSinks& sinks,
                 const ShowOptimizing& on_progress)
      : request_(request), sinks_(sinks), on_progress_(on_progress), keeps_plan_(GoesOnWithPlan(request)) {}

  OptimizedModel Run() {
    const Target cpu = ChosenTarget(request_.arguments.machine);
    if (keeps_plan_)
      RequireNetwork(request_.plan_path, LoadModel(request_.arguments.model).name(),
                     ReadPlanHeader(request_.plan_path));
    std::vector<Precision> types = {Precision::kF32, Precision::kInt8};
    if (HasBf16(cpu)) types.insert(types.begin() + 1, Precision::kBf16);
    for (size_t i = 0; i < types.size() && !optimized_.stopped; ++i) Tune(types[i], types.size() - i);
    if (!optimized_.stopped) Mix();
    optimized_.elapsed_seconds = NowSeconds() - request_.begin;
    return std::move(optimized_);
  }

 private:
  static constexpr double kForMixing = 0.5;

  // The first of `left` types gets its share of what tuning has left.
  void Tune(Precision precision, size_t left) {
    const bool is_first = precision == Precision::kF32;
    OptimizeModelRequest one = request_;
    one.arguments.machine.precision = PrecisionName(precision);
    if (precision != Precision::kInt8) one.arguments.model.calibration = {};  // its samples' sizes are there
    one.begin = NowSeconds();
    one.seconds = std::max(0.0, request_.begin + (1 - kForMixing) * request_.seconds - one.begin) /
                  static_cast<double>(left);
    if (!is_first) one.existing_log = ExistingLog::kResume;
    // What an earlier run has mixed stays until there is another.
    const bool aside = !is_first || keeps_plan_;
    const std::string path = aside
                                 ? fmt::format("{}.{}.partial", request_.plan_path, PrecisionName(precision))
                                 : request_.plan_path;
    one.plan_path = path;
    OptimizedModel of_type;
    try {
      of_type = OptimizeInOneType(std::move(one), sinks_, on_progress_);
    } catch (const Error& error) {
      if (aside) std::filesystem::remove(path);
      if (precision != Precision::kInt8 || error.code() != ErrorCode::kBadModel) throw;
      return;  // what cannot be quantised; GraphTuneModel says so
    }
    if (aside) std::filesystem::remove(path);
    if (precision == Precision::kInt8) calibrated_ = of_type.plans.front().plan.quantization;
    for (const OptimizedPlan& found : of_type.plans)
      found_.push_back({fmt::format("tuned in {}", PrecisionName(precision)), found.plan});
    optimized_.stopped = of_type.stopped;
    optimized_.disturbance += of_type.disturbance;
    optimized_.database_path = of_type.database_path;
    optimized_.rows.insert(optimized_.rows.end(), std::make_move_iterator(of_type.rows.begin()),
                           std::make_move_iterator(of_type.rows.end()));
    if (!is_first) return;
    optimized_.plans = std::move(of_type.plans);
    if (aside) return;
    optimized_.plans_written = of_type.plans_written;
    optimized_.first_plan_seconds = of_type.first_plan_seconds;
  }

  void Mix() {
    GraphTuneModelRequest mixing;
    mixing.arguments = request_.arguments;
    mixing.arguments.tuning.allow_defaults = true;
    mixing.hurried = true;
    mixing.calibrated = calibrated_;
    mixing.plan_path = request_.plan_path;
    mixing.begin = NowSeconds();
    mixing.time_budget = std::max(0.0, request_.begin + request_.seconds - mixing.begin);
    mixing.max_weight_bytes = request_.max_weight_bytes;
    mixing.max_output_error = request_.max_output_error;
    mixing.known = found_;
    size_t size = 0;
    try {
      GraphTuneSizes(mixing, sinks_, [&](const GraphTuneModelRequest&, const GraphTunedModel& tuned) {
        Take(optimized_.plans.at(size++), tuned);
      });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInterrupted) throw;
      optimized_.stopped = true;
    }
  }

  // In place of the plan in f32.
  void Take(OptimizedPlan& plan, const GraphTunedModel& tuned) {
    plan.plan = tuned.refined.plan;
    plan.measurement = tuned.refined.check;
    plan.solutions = static_cast<int>(tuned.refined.rounds.size());
    const bool both_ran = plan.measurement.seconds > 0 && plan.untuned.seconds > 0;
    plan.seconds_saved = both_ran ? plan.untuned.seconds - plan.measurement.seconds : 0;
    if (tuned.output_error) optimized_.differences.push_back({.error = *tuned.output_error});
    optimized_.types.push_back(tuned.types);
    if (optimized_.plans_written++ == 0) optimized_.first_plan_seconds = NowSeconds() - request_.begin;
  }

  const OptimizeModelRequest& request_;
  const WorkSinks& sinks_;
  const ShowOptimizing& on_progress_;
  const bool keeps_plan_;
  std::shared_ptr<const ModelQuantization> calibrated_;
  std::vector<RivalPlan> found_;
  OptimizedModel optimized_;
};

}  // namespace

std::string ProgressText(const OptimizeProgress& at) {
  std::string text = fmt::format("{} plan{} written", at.plans, at.plans == 1 ? "" : "s");
  if (at.best_seconds > 0)
    text += fmt::format(", {} ms, at first {} ms", MillisecondsCell(at.best_seconds).text,
                        MillisecondsCell(at.untuned_seconds).text);
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
  const bool mixes = ParsePrecision(request.arguments.machine.precision) == Precision::kMixed;
  if (!mixes && request.max_output_error)
    throw Error(ErrorCode::kUsage,
                "--max-output-error is for --precision mixed, not " + request.arguments.machine.precision);
  if (!mixes) return OptimizeInOneType(std::move(complete), sinks, on_progress);
  if (request.arguments.machine.target != kCpuDevice)
    throw Error(ErrorCode::kUsage, "optimize mixes types on CPUs; on a GPU tune, then graph-tune");
  TakeSizesOfSamples(&arguments.model);
  return MixedOptimizer(complete, sinks, on_progress).Run();
}

}  // namespace tilesmith
