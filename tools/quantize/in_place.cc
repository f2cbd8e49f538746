#include "tools/quantize/in_place.h"

#include <fmt/format.h>

#include <memory>

#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "tools/quantize/calibration_inputs.h"
#include "tools/quantize/quantize_model.h"

namespace tilesmith {
namespace {

void TakeSizes(const CalibrationInputs& inputs, ModelOptions* model) {
  for (auto& [name, shape] : inputs.OpenShapes()) model->open_shapes.emplace(name, shape);
}

}  // namespace

void DeclareCalibration(Args& args, ModelOptions* model) {
  args.Texts("--calibrate", &model->calibration.paths,
             "Where something is quantised: FILE.npz, FILE.npy or a directory of them, with samples of the "
             "inputs, as quantize takes them; may be repeated (default: random ones)",
             "FILE|DIR");
}

void TakeSizesOfSamples(ModelOptions* model) { TakeSizes(CalibrationInputs(model->calibration), model); }

void RequireModelToQuantize(const ModelOptions& model) {
  if (LooksLikeModel(model.model) || !LooksLikeWorkload(model.model)) return;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("{} int8 is for a MODEL here: a workload says its types itself, such as ...:u8:i8:u8",
                  settings::kPrecision));
}

void CalibrateInPlace(const DevicePtr& machine, const WorkSinks& sinks, ModelOptions* model) {
  RequireModelToQuantize(*model);
  const CalibrationInputs inputs(model->calibration);
  TakeSizes(inputs, model);
  QuantizeModelRequest request;
  request.model = SizesToTune(*model).front();
  request.source = model->calibration;
  model->quantization = std::make_shared<const ModelQuantization>(CalibrateModel(request, machine, sinks));
  if (inputs.random())
    sinks.Warn(fmt::format("calibrated on random inputs: accuracy on real ones may be poor ({} FILES)",
                           settings::kCalibrate));
}

void CheckCalibration(Precision precision, const ModelOptions& model) {
  const bool calibrates = precision == Precision::kInt8 || precision == Precision::kMixed;
  if (calibrates || model.calibration.paths.empty()) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} is for a precision with int8 in it, not {}",
                                             settings::kCalibrate, PrecisionName(precision)));
}

void QuantizeInPlace(Precision precision, const std::function<DevicePtr()>& open, const WorkSinks& sinks,
                     ModelOptions* model) {
  CheckCalibration(precision, *model);
  if (precision == Precision::kInt8 && !model->quantization) CalibrateInPlace(open(), sinks, model);
}

void QuantizeTargets(Precision precision, const std::function<DevicePtr()>& open, const WorkSinks& sinks,
                     TargetOptions* targets) {
  targets->in_bytes = precision == Precision::kInt8;
  const bool nothing = targets->model.model.empty();  // LoadTargets says so
  if (!targets->of_workloads() && !nothing) return QuantizeInPlace(precision, open, sinks, &targets->model);
  if (!targets->model.calibration.paths.empty())
    throw Error(
        ErrorCode::kUsage,
        fmt::format("{} is for a MODEL: nothing depends on what convolutions compute", settings::kCalibrate));
}

std::vector<ConvTask> QuantizedTasks(ModelOptions model, const DevicePtr& machine, const WorkSinks& sinks) {
  model.calibration.samples = 1;
  CalibrateInPlace(machine, {.on_stage = sinks.on_stage, .stop = sinks.stop}, &model);
  std::vector<Graph> graphs;
  for (const ModelOptions& size : SizesToTune(model)) graphs.push_back(LoadModel(size));
  std::vector<ConvTask> tasks = TasksOf(graphs);
  std::erase_if(tasks, [](const ConvTask& task) { return !task.workload.bytes; });
  return tasks;
}

void AddCalibration(Report& report, const ModelQuantization* quantization) {
  if (quantization == nullptr) return;
  report.Fact("calibration", "int8, calibrated by", TextCell(quantization->calibration));
  report.details().Fact("random_inputs", "", {quantization->random_inputs, ""});
}

}  // namespace tilesmith
