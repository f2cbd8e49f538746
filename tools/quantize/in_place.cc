#include "tools/quantize/in_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "graph_tuner/check/output_errors.h"
#include "graph_tuner/check/step_memory.h"
#include "graph_tuner/executor/end_tensors.h"
#include "graph_tuner/executor/executor.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "layouts/base/visible.h"
#include "ops/passes/passes.h"
#include "tools/quantize/calibration_inputs.h"
#include "tools/quantize/quantize_model.h"
#include "tools/quantize/tensor_runner.h"

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
  request.model = SizesOf(*model).front();
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
  for (const ModelOptions& size : SizesOf(model)) graphs.push_back(LoadModel(size));
  std::vector<ConvTask> tasks = TasksOf(graphs);
  std::erase_if(tasks, [](const ConvTask& task) { return !task.workload.bytes; });
  return tasks;
}

void AddCalibration(Report& report, const ModelQuantization* quantization) {
  if (quantization == nullptr) return;
  report.Fact("calibration", "int8, calibrated by", TextCell(quantization->calibration));
  report.details().Fact("random_inputs", "", {quantization->random_inputs, ""});
}

namespace {

// The network in floats, every layer's output one of its own, so that no pass fuses it away.
class InjectedNetwork {
 public:
  InjectedNetwork(const ModelFile& file, const std::vector<std::string>& layers, const DevicePtr& machine)
      : graph_(GraphOf(file, layers)),
        executor_(graph_, HeuristicPlan(graph_, machine->target(), machine->threads()), machine) {
    for (const Graph::NodeId id : graph_.GraphInputs())
      inputs_.emplace_back(graph_.node(id).shape, Layout::Nchw(graph_.node(id).type));
    const std::vector<std::string> own = SummarizeOnnx(file.bytes, file.source).outputs;
    for (const Graph::NodeId id : graph_.outputs()) {
      outputs_.emplace_back(graph_.node(id).shape, Layout::Nchw(graph_.node(id).type));
      is_own_.push_back(std::ranges::any_of(
          own, [&](const std::string& output) { return VisibleLine(output) == graph_.node(id).name; }));
    }
    // Where what gives the outputs is left for the end, what that reads.
    if (std::ranges::find(is_own_, true) == is_own_.end()) is_own_.assign(is_own_.size(), true);
    steps_ = executor_.BindSteps(PointersTo<const Tensor*>(inputs_), PointersTo<Tensor*>(outputs_));
  }

  const Graph& graph() const { return graph_; }

  void SetInputs(const std::vector<Tensor>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i)
      std::memcpy(inputs_[i].raw(), inputs[i].raw(), static_cast<size_t>(inputs[i].bytes()));
  }
  // What the network gives with `value` in place of the tensor; without a step that computes it, as it is.
  std::vector<Tensor> OutputsWith(const std::string& tensor, const Tensor& value) {
    const std::optional<Graph::NodeId> node = ComputedBy(VisibleLine(tensor));
    for (size_t i = 0; i < steps_.size(); ++i) {
      executor_.RunStep(i);
      const BoundStep& step = steps_[i];
      if (node && step.computes && step.node == *node)
        WritePlain(value.Reshaped(step.output.shape), step.output, step.output_memory);
    }
    return Outputs();
  }
  std::vector<Tensor> RunExactly() {
    for (size_t i = 0; i < steps_.size(); ++i) executor_.RunStep(i);
    return Outputs();
  }

 private:
  static Graph GraphOf(const ModelFile& file, const std::vector<std::string>& layers) {
    ImportOptions import = file.import;
    import.outputs = layers;
    for (const std::string& output : SummarizeOnnx(file.bytes, file.source).outputs)
      if (std::ranges::find(layers, output) == layers.end()) import.outputs.push_back(output);
    return OptimizeGraph(ImportOnnxBytes(file, file.source, import));
  }

  // The node that computes what the one of this name shows, perhaps in another shape.
  std::optional<Graph::NodeId> ComputedBy(const std::string& name) const {
    std::optional<Graph::NodeId> node = graph_.Find(name);
    while (node && graph_.node(*node).op->IsView()) node = graph_.Inputs(*node).front();
    return node;
  }

  std::vector<Tensor> Outputs() const {
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (is_own_[i]) outputs.push_back(outputs_[i]);
    return outputs;
  }

  const Graph graph_;
  Executor executor_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<bool> is_own_;  // outputs that are the network's, not a layer's alone
  std::vector<BoundStep> steps_;
};

}  // namespace

QuantizedLayers QuantizedLayerErrors(const ModelOptions& model, int64_t samples, const DevicePtr& machine,
                                     const WorkSinks& sinks) {
  const ModelFile file = ReadModel(model);
  QdqModel quantizable(file, file.source, model.quantization->options);
  const std::vector<TensorQuantizer> quantizers = QuantizersOf(*model.quantization, file.source, quantizable);
  const QdqFile written = quantizable.Write(quantizers, {});
  QuantizedLayers quantized = {
      .layers = {}, .titles = quantizable.Titles(), .byte_nodes = written.byte_nodes};
  std::vector<QuantizedLayerError>& errors = quantized.layers;
  for (const QdqLayer& layer : written.layers) {
    errors.push_back({layer.name, layer.output, layer.inputs, layer.channels > 0});
    quantized.titles[layer.output] = layer.name;
  }
  if (samples == 0) return quantized;
  const QdqFile alone = quantizable.WriteAlone(quantizers);
  std::vector<std::string> outputs, own_outputs;
  for (const QdqLayer& layer : alone.layers) {
    outputs.push_back(layer.output);
    own_outputs.push_back(layer.own_output);
  }
  TensorRunner layers(OnnxFile::Parse(alone, file.source, file.import.limits), file.source, own_outputs,
                      file.import, machine, sinks.stop);
  ModelFile wide = file;
  Widen(wide, wide.source);
  InjectedNetwork network(wide, outputs, machine);
  std::vector<OutputSums> sums(errors.size());
  int64_t done = 0;
  for (const std::vector<Tensor>& inputs : SamplesOf(network.graph(), model.calibration, samples)) {
    ++done;
    layers.Run(inputs);
    network.SetInputs(inputs);
    const std::vector<Tensor> exact = network.RunExactly();
    for (size_t i = 0; i < errors.size(); ++i) {
      ThrowIfStopped(sinks.stop);
      sinks.Stage(fmt::format("what each layer in int8 does to the outputs: sample {}, {}/{}", done, i + 1,
                              errors.size()));
      if (layers.Has(i)) sums[i].Add(network.OutputsWith(outputs[i], layers.Value(i)), exact);
    }
  }
  for (size_t i = 0; i < errors.size(); ++i) errors[i].square = std::pow(sums[i].Difference().error, 2);
  return quantized;
}

}  // namespace tilesmith
