#include "graph_tuner/planner/explain_types.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "graph_tuner/planner/network_types.h"
#include "graph_tuner/problem/graph_tune.h"
#include "layouts/base/visible.h"

namespace tilesmith {
namespace {

// The node that computes the layer's output in bytes, wherever there is one; "" where there is none.
std::string ByteNodeOf(const QdqLayer& layer, const QdqFile& file) {
  const auto found = file.byte_nodes.find(VisibleLine(layer.output));
  return found == file.byte_nodes.end() ? "" : found->second;
}

}  // namespace

std::string NodeOfLayer(const NetworkSource& network, const QuantizationPtr& quantization,
                        const std::string& name) {
  if (!quantization) return name;
  const QdqFile file = QuantizedBy(*quantization, network.File());
  const std::vector<QdqLayer>& layers = file.layers;
  auto layer = std::ranges::find_if(
      layers, [&](const QdqLayer& one) { return one.name == name || VisibleLine(one.output) == name; });
  const Graph graph = network.Load(quantization);
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
  TypeExplainer(const PlanRequest& request, const std::string& node, const WorkSinks& sinks)
      : request_(request),
        network_(*request.network),
        node_(node),
        sinks_(sinks),
        quantization_(request.quantization ? request.quantization : request.network->Calibrate(sinks)) {}

  std::vector<TypedNode> Run() {
    if (!FindLayer()) return {};
    const bool in_floats = !request_.quantization;
    const std::vector<std::string>& kept = quantization_->options.keep;
    std::vector<std::string> others = in_floats ? weighted_ : kept;
    const bool is_kept = in_floats || std::ranges::find(kept, layer_) != kept.end();
    std::erase(others, layer_);
    const PinnedTeam team(request_.machine);
    const FloatNetwork floats = OpenFloats(network_, request_.machine);
    costs_ = request_.open_costs();
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
    auto quantization = std::make_shared<ModelQuantization>(*quantization_);
    quantization->options.keep.clear();
    const ModelFile file = network_.File();
    const QdqModel without(file, file.source, quantization->options);
    const bool complete = std::ranges::all_of(without.tensors(), [&](const QdqTensor& tensor) {
      return quantization->tensors.contains(tensor.name);
    });
    if (!complete) quantization->options.keep = quantization_->options.keep;
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
    auto some = std::make_shared<ModelQuantization>(*quantization_);
    some->options.keep = keep;
    const auto is_kept = [&](const std::string& layer) {
      return std::ranges::find(keep, layer) != keep.end();
    };
    const QuantizationPtr quantization = std::ranges::all_of(weighted_, is_kept) ? nullptr : some;
    const Graph graph = network_.Load(quantization);
    GraphTuneOptions options = request_.tuning;
    options.allow_defaults = true;
    const Plan plan = GraphTune(NetworkProblem(graph, *request_.log, *costs_, std::move(options))).plan;
    TypedNode node = {.type = type, .network_seconds = plan.predicted_seconds};
    node.output_error = floats.errors.Of(graph, plan).error;
    const std::string name = NodeOfLayer(network_, quantization, layer_);
    const auto planned = std::ranges::find_if(
        plan.nodes, [&](const NodePlan& one) { return one.node == name || one.node == tensor_; });
    if (planned != plan.nodes.end()) node.node_seconds = planned->predicted_seconds;
    return node;
  }

  const PlanRequest& request_;
  const NetworkSource& network_;
  const std::string& node_;
  const WorkSinks& sinks_;
  const QuantizationPtr quantization_;
  std::unique_ptr<CostSource> costs_;
  std::string layer_, tensor_;         // the node's title, and what it writes
  std::vector<std::string> weighted_;  // titles of all layers with weights
};

}  // namespace

std::vector<TypedNode> ExplainTypes(const PlanRequest& request, const std::string& node,
                                    const WorkSinks& sinks) {
  return TypeExplainer(request, node, sinks).Run();
}

}  // namespace tilesmith
