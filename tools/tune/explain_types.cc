#include "tools/tune/explain_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "graph_tuner/planner/network_types.h"
#include "graph_tuner/problem/graph_tune.h"
#include "layouts/base/visible.h"
#include "tools/quantize/in_place.h"
#include "tools/tune/graph_tune_model.h"

namespace tilesmith {
namespace {

// The model quantised so.
QdqFile QuantizedBy(const ModelQuantization& quantization, const ModelFile& file) {
  QdqModel model(file, file.source, quantization.options);
  return model.Write(QuantizersOf(quantization, file.source, model), {});
}

// The node that computes the layer's output in bytes, wherever there is one; "" where there is none.
std::string ByteNodeOf(const QdqLayer& layer, const QdqFile& file) {
  const auto found = file.byte_nodes.find(VisibleLine(layer.output));
  return found == file.byte_nodes.end() ? "" : found->second;
}

}  // namespace

std::string NodeOfLayer(const ModelOptions& model, const std::string& name) {
  if (!model.quantization) return name;
  const QdqFile file = QuantizedBy(*model.quantization, ReadModel(model));
  const std::vector<QdqLayer>& layers = file.layers;
  auto layer = std::ranges::find_if(
      layers, [&](const QdqLayer& one) { return one.name == name || VisibleLine(one.output) == name; });
  const Graph graph = LoadModel(model);
  while (layer != layers.end()) {
    const std::string in_bytes = ByteNodeOf(*layer, file);
    if (graph.Find(in_bytes)) return in_bytes;
    // A sum behind it that it takes along.
    layer = std::ranges::find_if(layer + 1, layers.end(), [&](const QdqLayer& one) {
      return std::ranges::find(one.inputs, layer->output) != one.inputs.end();
    });
  }
  return name;
}

namespace {

class TypeExplainer {
 public:
  TypeExplainer(const GraphTuningArguments& arguments, const std::string& node, const WorkSinks& sinks)
      : arguments_(arguments),
        node_(node),
        sinks_(sinks),
        machine_(OpenMachine(arguments.machine)),
        quantized_(arguments.model) {
    if (!quantized_.quantization) CalibrateInPlace(machine_, sinks_, &quantized_);
  }

  std::vector<TypedNode> Run() {
    if (!FindLayer()) return {};
    const bool in_floats = !arguments_.model.quantization;
    const std::vector<std::string>& kept = quantized_.quantization->options.keep;
    std::vector<std::string> others = in_floats ? weighted_ : kept;
    const bool is_kept = in_floats || std::ranges::find(kept, layer_) != kept.end();
    std::erase(others, layer_);
    const PinnedTeam team(machine_);
    const FloatNetwork floats = OpenFloats(ModelNetwork(quantized_, machine_), machine_);
    costs_ = OpenCosts(arguments_, machine_, sinks_);
    log_ = LoadTuningLog(arguments_, machine_);
    std::vector<TypedNode> nodes = {InType("int8", others, floats)};
    others.push_back(layer_);
    nodes.push_back(InType("float", others, floats));
    nodes[is_kept ? 1 : 0].is_asked = true;
    return nodes;
  }

 private:
  // The title of the layer that is asked for, and those of all. With what was kept when the model was
  // planned, as far as it was calibrated.
  bool FindLayer() {
    auto quantization = std::make_shared<ModelQuantization>(*quantized_.quantization);
    quantization->options.keep.clear();
    const ModelFile file = ReadModel(quantized_);
    const QdqModel without(file, file.source, quantization->options);
    const bool complete = std::ranges::all_of(without.tensors(), [&](const QdqTensor& tensor) {
      return quantization->tensors.contains(tensor.name);
    });
    if (!complete) quantization->options.keep = quantized_.quantization->options.keep;
    const QdqFile quantized = QuantizedBy(*quantization, file);
    for (const QdqLayer& layer : quantized.layers) {
      if (layer.channels == 0) continue;
      weighted_.push_back(layer.name);
      const std::string tensor = VisibleLine(layer.output);
      if (layer.name != node_ && tensor != node_ && ByteNodeOf(layer, quantized) != node_) continue;
      layer_ = layer.name;
      tensor_ = tensor;
    }
    return !layer_.empty();
  }

  TypedNode InType(const std::string& type, const std::vector<std::string>& keep,
                   const FloatNetwork& floats) {
    ThrowIfStopped(sinks_.stop);
    sinks_.Stage("the layer in " + type);
    ModelOptions model = quantized_;
    auto quantization = std::make_shared<ModelQuantization>(*quantized_.quantization);
    quantization->options.keep = keep;
    model.quantization = std::move(quantization);
    const auto is_kept = [&](const std::string& layer) {
      return std::ranges::find(keep, layer) != keep.end();
    };
    if (std::ranges::all_of(weighted_, is_kept)) model.quantization.reset();
    const Graph graph = LoadModel(model);
    GraphTuneOptions options = TuningOptions(arguments_, machine_, sinks_);
    options.allow_defaults = true;
    const Plan plan = GraphTune(NetworkProblem(graph, log_, *costs_, std::move(options))).plan;
    TypedNode node = {.type = type, .network_seconds = plan.predicted_seconds};
    node.output_error = floats.errors.Of(graph, plan).error;
    const std::string name = NodeOfLayer(model, layer_);
    const auto planned = std::ranges::find_if(
        plan.nodes, [&](const NodePlan& one) { return one.node == name || one.node == tensor_; });
    if (planned != plan.nodes.end()) node.node_seconds = planned->predicted_seconds;
    return node;
  }

  const GraphTuningArguments& arguments_;
  const std::string& node_;
  const WorkSinks& sinks_;
  const DevicePtr machine_;
  ModelOptions quantized_;
  std::unique_ptr<CostSource> costs_;
  std::vector<Record> log_;
  std::string layer_, tensor_;         // the node's title, and what it writes
  std::vector<std::string> weighted_;  // titles of all layers with weights
};

}  // namespace

std::vector<TypedNode> ExplainTypes(const GraphTuningArguments& arguments, const std::string& node,
                                    const WorkSinks& sinks) {
  return TypeExplainer(arguments, node, sinks).Run();
}

void AddTypedNodes(Report& report, const std::vector<TypedNode>& nodes) {
  if (nodes.empty()) return;
  Table& table = report.AddTable({"types",
                                  "in each type, the other layers as they are",
                                  {{"type", "type"},
                                   {"asked", "as it is"},
                                   {"own_seconds", "own ms"},
                                   {"total_seconds", "network ms"},
                                   {"output_error", "output error"}}});
  for (const TypedNode& node : nodes) {
    table.AddRow({TextCell(node.type),
                  {node.is_asked, node.is_asked ? "yes" : ""},
                  node.node_seconds ? MillisecondsCell(*node.node_seconds) : NoCell(),
                  MillisecondsCell(node.network_seconds),
                  {node.output_error, fmt::format("{:.2g}", node.output_error)}});
  }
}

}  // namespace tilesmith
