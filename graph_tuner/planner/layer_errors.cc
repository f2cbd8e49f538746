#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "graph_tuner/check/output_errors.h"
#include "graph_tuner/check/step_memory.h"
#include "graph_tuner/executor/end_tensors.h"
#include "graph_tuner/executor/executor.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/planner/network_source.h"
#include "graph_tuner/planner/tensor_runner.h"
#include "layouts/base/visible.h"
#include "ops/passes/passes.h"

namespace tilesmith {
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

QdqFile QuantizedBy(const ModelQuantization& quantization, const ModelFile& file) {
  QdqModel model(file, file.source, quantization.options);
  return model.Write(QuantizersOf(quantization, file.source, model), {});
}

QuantizedLayers QuantizedLayerErrors(const NetworkSource& network, const ModelQuantization& quantization,
                                     int64_t samples, const DevicePtr& machine, const WorkSinks& sinks) {
  const ModelFile file = network.File();
  QdqModel quantizable(file, file.source, quantization.options);
  const std::vector<TensorQuantizer> quantizers = QuantizersOf(quantization, file.source, quantizable);
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
  InjectedNetwork injected(wide, outputs, machine);
  std::vector<OutputSums> sums(errors.size());
  int64_t done = 0;
  for (const std::vector<Tensor>& inputs : network.Samples(injected.graph(), samples)) {
    ++done;
    layers.Run(inputs);
    injected.SetInputs(inputs);
    const std::vector<Tensor> exact = injected.RunExactly();
    for (size_t i = 0; i < errors.size(); ++i) {
      ThrowIfStopped(sinks.stop);
      sinks.Stage(fmt::format("what each layer in int8 does to the outputs: sample {}, {}/{}", done, i + 1,
                              errors.size()));
      if (layers.Has(i)) sums[i].Add(injected.OutputsWith(outputs[i], layers.Value(i)), exact);
    }
  }
  for (size_t i = 0; i < errors.size(); ++i) errors[i].square = std::pow(sums[i].Difference().error, 2);
  return quantized;
}

}  // namespace tilesmith
