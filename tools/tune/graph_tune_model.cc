#include "tools/tune/graph_tune_model.h"

#include <fmt/format.h>

#include <utility>

#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/planner/network_types.h"
#include "layouts/base/error.h"
#include "tools/cli/output_file.h"
#include "tools/doctor/disturbance.h"
#include "tools/quantize/calibration_inputs.h"
#include "tools/quantize/in_place.h"

namespace tilesmith {

ModelNetwork::ModelNetwork(ModelOptions model, DevicePtr machine)
    : model_(std::move(model)), machine_(std::move(machine)) {
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
  if (calibrated_) return calibrated_;
  CalibrateInPlace(machine_, sinks, &model_);
  return calibrated_ = std::exchange(model_.quantization, nullptr);
}

ModelFile ModelNetwork::File() const { return ReadModel(model_); }

ModelSizes::ModelSizes(const ModelOptions& model, const DevicePtr& machine) {
  for (ModelOptions& size : SizesToTune(model)) {
    networks_.push_back(std::make_unique<ModelNetwork>(std::move(size), machine));
    pointers_.push_back(networks_.back().get());
  }
}

std::function<std::unique_ptr<CostSource>()> CostsOf(const GraphTuningArguments& arguments,
                                                     const DevicePtr& machine, const WorkSinks& sinks) {
  // Of all copies of it.
  return [&arguments, &sinks, machine, warned = std::make_shared<bool>(false)] {
    if (!std::exchange(*warned, true)) WarnIfDisturbed(machine, sinks);
    return OpenCosts(arguments, machine, sinks);
  };
}

void GraphTuneModel(const GraphTuneModelRequest& request, const WorkSinks& sinks,
                    const std::function<void(const ModelOptions&, const PlannedNetwork&)>& on_planned) {
  const GraphTuningArguments& arguments = request.arguments;
  RequireReplaceable(request.plan_path, OutputFormat::kPlan,
                     {arguments.log_path, arguments.costs_path, arguments.model.model});
  CheckGraphTuning(arguments);
  PlanRequest planning;
  static_cast<PlanEffort&>(planning) = request;
  planning.machine = OpenMachine(arguments.machine);
  planning.tuning = TuningOptions(arguments, planning.machine, sinks);
  planning.quantization = arguments.model.quantization;
  planning.open_costs = CostsOf(arguments, planning.machine, sinks);
  CheckOutputErrorLimit(planning.max_output_error, planning.tuning.precision);
  CheckCalibration(planning.tuning.precision, arguments.model);
  const std::vector<ModelOptions> sizes = SizesToTune(arguments.model);
  const ModelSizes networks(arguments.model, planning.machine);
  const std::vector<Record> log = LoadTuningLog(arguments, planning.machine);
  planning.log = &log;
  const auto keep = [&](const std::vector<Plan>& plans) { WritePlans(request.plan_path, plans); };
  PlanSizes(planning, networks.networks(), keep, sinks, [&](size_t size, const PlannedNetwork& planned) {
    if (on_planned) on_planned(sizes[size], planned);
    if (!planned.stopped) return;
    throw Error(ErrorCode::kInterrupted,
                fmt::format("interrupted; the {} plan so far is in {}",
                            planned.refined.check.seconds > 0 ? "fastest" : "only", request.plan_path));
  });
}

}  // namespace tilesmith
