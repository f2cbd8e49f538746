#include "tools/tune/optimize_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "layouts/base/text_file.h"
#include "tools/cli/output_file.h"
#include "tools/quantize/in_place.h"
#include "tools/tune/baselines.h"
#include "tools/tune/graph_tune_model.h"

namespace tilesmith {
namespace {

bool HaveSameNodes(const Plan& plan, const Graph& graph) {
  std::vector<std::string> of_plan, of_graph;
  for (const NodePlan& node : plan.nodes) of_plan.push_back(node.node);
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const std::string_view type = graph.node(id).op->Type();
    if (type != "Constant" && type != "Input") of_graph.push_back(graph.node(id).name);
  }
  return of_plan == of_graph;
}

// A plan file that is gone on with holds nothing of another network.
void RequireNetwork(const std::string& path, const std::string& network, const Plan& plan) {
  if (plan.network == network) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("{} is a plan for network \"{}\", not for \"{}\": name another file, or remove it",
                          path, plan.network, network));
}

// The plan file that is gone on with. Some of its plans are for the graphs on this machine with these
// threads, others for other sizes or numbers of threads.
class KeptPlans {
 public:
  KeptPlans(std::string path, bool quantized, DevicePtr machine, const WorkSinks& sinks)
      : path_(std::move(path)), quantized_(quantized), machine_(std::move(machine)), sinks_(sinks) {}

  std::vector<Plan> For(std::span<const Graph> graphs) {
    std::vector<Plan> known;
    for (Plan& plan : ReadPlans(path_)) {
      const auto graph = std::ranges::find(graphs, plan.graph_hash, GraphHash);
      if (graph == graphs.end() || plan.threads != machine_->threads()) {
        KeepOther(graphs.front(), std::move(plan));
        continue;
      }
      try {
        CheckPlan(plan, *graph, machine_->target(), machine_->threads());
        known.push_back(std::move(plan));
      } catch (const Error& error) {
        sinks_.Warn(fmt::format("{} is made anew: {}", path_, error.what()));
      }
    }
    return known;
  }
  void Write(std::vector<Plan> plans) const {
    plans.insert(plans.end(), others_.begin(), others_.end());
    WritePlans(path_, plans);
  }

 private:
  // Plans of one file are of one model: where either is quantised they may not be.
  void KeepOther(const Graph& graph, Plan plan) {
    RequireNetwork(path_, graph.name(), plan);
    if (!plan.quantization && !quantized_ && HaveSameNodes(plan, graph))
      return others_.push_back(std::move(plan));
    sinks_.Warn(fmt::format(
        "{}: a plan for another size, type, version or number of threads of the network is not kept", path_));
  }

  const std::string path_;
  const bool quantized_;  // the network that is optimized
  const DevicePtr machine_;
  const WorkSinks& sinks_;
  std::vector<Plan> others_;
};

// Before anything is opened.
void CheckRequest(const OptimizeModelRequest& request) {
  const GraphTuningArguments& arguments = request.arguments;
  RequireDifferent({request.plan_path, arguments.log_path, arguments.costs_path});
  RequireReplaceable(request.plan_path, OutputFormat::kPlan,
                     {arguments.log_path, arguments.costs_path, arguments.model.model});
  RequireReplaceable(arguments.log_path, OutputFormat::kLog, {arguments.model.model});
  RequireReplaceable(arguments.costs_path, OutputFormat::kCosts);
  const Precision precision = arguments.machine.precision;
  const bool mixes = precision == Precision::kMixed;
  if (!mixes && request.max_output_error)
    throw Error(ErrorCode::kUsage, fmt::format("{} is for {} mixed, not {}", settings::kMaxOutputError,
                                               settings::kPrecision, PrecisionName(precision)));
  if (mixes && arguments.machine.target != kCpuDevice)
    throw Error(ErrorCode::kUsage, "optimize mixes types on CPUs; on a GPU tune, then graph-tune");
  CheckAccuracyLimits(arguments.tuning.accuracy);
}

}  // namespace

std::string ProgressText(const OptimizeProgress& at) {
  std::string text = fmt::format("{} plan{} written", at.plans, at.plans == 1 ? "" : "s");
  if (at.best_seconds > 0)
    text += fmt::format(", {} ms, at first {} ms", MillisecondsText(at.best_seconds),
                        MillisecondsText(at.untuned_seconds));
  return at.stage.empty() ? text : text + "; " + at.stage;
}

OptimizedModel OptimizeModel(OptimizeModelRequest request, const WorkSinks& sinks,
                             const ShowOptimizing& on_progress) {
  GraphTuningArguments& arguments = request.arguments;
  if (request.log_path.empty()) request.log_path = LogPathBeside(request.plan_path);
  arguments.log_path = request.log_path;
  CheckRequest(request);
  const Precision precision = arguments.machine.precision;
  const bool mixes = precision == Precision::kMixed, quantizes = mixes || precision == Precision::kInt8;
  const bool resumes = request.existing_log == ExistingLog::kResume && FileExists(request.plan_path);
  const DevicePtr machine = OpenMachine(arguments.machine);
  CheckCalibration(precision, arguments.model);
  if (precision == Precision::kInt8) RequireModelToQuantize(arguments.model);
  if (TargetOptions{.model = arguments.model, .suite = ""}.of_workloads())
    throw Error(ErrorCode::kUsage, fmt::format("{} is a convolution, not a network", arguments.model.model));
  if (quantizes) TakeSizesOfSamples(&arguments.model);
  const ModelSizes sizes(arguments.model, machine);
  if (mixes && resumes)
    RequireNetwork(request.plan_path, sizes.networks().front()->Load(nullptr).name(),
                   ReadPlanHeader(request.plan_path));

  OptimizeRequest optimizing;
  static_cast<OptimizeEffort&>(optimizing) = request;
  optimizing.sizes = sizes.networks();
  optimizing.machine = machine;
  optimizing.quantization = arguments.model.quantization;
  optimizing.planning = TuningOptions(arguments, machine, sinks);
  optimizing.worker = WorkerFor(request.worker, machine->target());
  KeptPlans kept(request.plan_path, quantizes || arguments.model.quantization, machine, sinks);
  if (resumes && !mixes)
    optimizing.known_plans = [&](std::span<const Graph> graphs) { return kept.For(graphs); };
  optimizing.keeps_plan = resumes && mixes;
  optimizing.keep = [&](const std::vector<Plan>& plans) { kept.Write(plans); };
  optimizing.open_tuning = [&](TuningRequest* tuning) {
    auto files = std::make_shared<TuningFiles>(request, sinks, tuning);
    tuning->time_baselines = [&, effort = TuningEffort(*tuning)](auto& rows, MachineWatch& watch) {
      TimeBaselines(effort, request, sinks, rows, watch);
    };
    request.existing_log = ExistingLog::kResume;
    return files;
  };
  optimizing.load_log = [&] { return LoadTuningLog(arguments, machine); };
  optimizing.open_costs = [&](const TuningDatabase* database) {
    GraphTuningArguments beside = arguments;
    if (database != nullptr) beside.machine_costs_path = MachineCostsPath(database->path());
    return OpenCosts(beside, machine, sinks);
  };
  optimizing.open_costs_to_mix = CostsOf(arguments, machine, sinks);
  return Optimize(optimizing, sinks, on_progress);
}

}  // namespace tilesmith
