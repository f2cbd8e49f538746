#include "tools/tune/graph_tune_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/planner/network_types.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "tools/cli/output_file.h"
#include "tools/doctor/disturbance.h"
#include "tools/quantize/calibration_inputs.h"
#include "tools/quantize/in_place.h"

namespace tilesmith {

ModelNetwork::ModelNetwork(ModelOptions model, DevicePtr machine, QuantizationPtr calibrated)
    : model_(std::move(model)), machine_(std::move(machine)), calibrated_(std::move(calibrated)) {
  model_.quantization.reset();
}

Graph ModelNetwork::Load(const QuantizationPtr& quantization) const {
  ModelOptions model = model_;
  model.quantization = quantization;
  return LoadModel(model);
}

std::vector<std::vector<Tensor>> ModelNetwork::Samples(const Graph& graph, int64_t most) const {
  return SamplesOf(graph, model_.calibration, most);
}

QuantizationPtr ModelNetwork::Calibrate(const WorkSinks& sinks) {
  if (calibrated_) {
    TakeSizesOfSamples(&model_);
    return calibrated_;
  }
  CalibrateInPlace(machine_, sinks, &model_);
  return std::exchange(model_.quantization, nullptr);
}

QuantizedLayers ModelNetwork::LayerErrors(const QuantizationPtr& quantization, int64_t samples,
                                          const WorkSinks& sinks) const {
  ModelOptions model = model_;
  model.quantization = quantization;
  return QuantizedLayerErrors(model, samples, machine_, sinks);
}

void GraphTuneModel(const GraphTuneModelRequest& request, const WorkSinks& sinks,
                    const std::function<void(const ModelOptions&, const PlannedNetwork&)>& on_planned) {
  const GraphTuningArguments& arguments = request.arguments;
  RequireReplaceable(request.plan_path, OutputFormat::kPlan,
                     {arguments.log_path, arguments.costs_path, arguments.model.model});
  CheckGraphTuning(arguments);
  const DevicePtr machine = OpenMachine(arguments.machine);
  const std::vector<ModelOptions> sizes = SizesOf(arguments.model);
  const double end = request.begin + request.time_budget;
  PlanRequest each;
  static_cast<PlanEffort&>(each) = request;
  each.machine = machine;
  std::vector<Record> log;
  bool warned = false;
  each.open_costs = [&] {
    if (!std::exchange(warned, true)) {
      WarnIfDisturbed(machine, sinks);
      if (each.tuning.precision == Precision::kBf16 && std::ranges::none_of(log, IsNarrow))
        sinks.Warn("the log has no record in bf16: the plan is in f32 (tuning in bf16 adds some)");
    }
    return OpenCosts(arguments, machine, sinks);
  };
  each.tuning = TuningOptions(arguments, machine, sinks);
  each.log = &log;
  CheckOutputErrorLimit(each.max_output_error, each.tuning.precision);
  std::vector<Plan> plans;  // of the sizes so far
  each.keep = [&](const Plan& plan) {
    std::vector<Plan> written = plans;
    written.push_back(plan);
    WritePlans(request.plan_path, written);
  };
  for (size_t i = 0; i < sizes.size(); ++i) {
    ModelOptions model = sizes[i];
    if (i > 0) each.begin = NowSeconds();
    each.time_budget = std::max(0.0, end - each.begin) / static_cast<double>(sizes.size() - i);
    // Which layers are quantised, and how, is decided in the first size: a file's plans are of one model.
    if (i > 0) model.quantization = plans.front().quantization;
    if (i > 0 && model.quantization && each.max_output_error) {
      sinks.Warn(fmt::format("{} was held to in the first size of the inputs, whose types the others have",
                             settings::kMaxOutputError));
      each.max_output_error.reset();
      each.tuning.precision = Precision::kInt8;  // what stays float is f32
    }
    if (i == 0) {
      QuantizeInPlace(each.tuning.precision, machine, sinks, &model);
      log = LoadTuningLog(arguments, machine);
    }
    ModelNetwork network(model, machine, request.calibrated);
    each.network = &network;
    each.quantization = model.quantization;
    const PlannedNetwork planned = i == 0 ? PlanNetwork(each, sinks) : PlanForm(each, sinks);
    if (on_planned) on_planned(sizes[i], planned);
    if (planned.stopped) {
      throw Error(ErrorCode::kInterrupted,
                  fmt::format("interrupted; the {} plan so far is in {}",
                              planned.refined.check.seconds > 0 ? "fastest" : "only", request.plan_path));
    }
    plans.push_back(planned.refined.plan);
  }
}

}  // namespace tilesmith
