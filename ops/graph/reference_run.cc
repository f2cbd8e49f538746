#include "ops/graph/reference_run.h"

#include <set>

#include "layouts/base/check.h"

namespace tilesmith {
namespace {

void CheckInputs(const Graph& graph, const std::vector<Graph::NodeId>& ids,
                 std::span<const Tensor* const> inputs) {
  if (inputs.size() != ids.size()) {
    throw Error(ErrorCode::kUsage, fmt::format("network \"{}\" has {} inputs, {} were given", graph.name(),
                                               ids.size(), inputs.size()));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    const Node& node = graph.node(ids[i]);
    const Tensor& tensor = *inputs[i];
    if (tensor.shape() != node.shape || tensor.type() != node.type || !tensor.layout().is_nchw()) {
      throw Error(ErrorCode::kUsage, fmt::format("input \"{}\" must be {} in NCHW, not {} in {}", node.name,
                                                 ShapeToString(node.shape), ShapeToString(tensor.shape()),
                                                 tensor.layout().ToString()));
    }
  }
}

}  // namespace

std::vector<Tensor> RunReference(const Graph& graph, std::span<const Tensor* const> inputs,
                                 const StopFlag* stop) {
  const std::vector<Graph::NodeId> input_ids = graph.GraphInputs();
  CheckInputs(graph, input_ids, inputs);

  std::vector<Tensor> values(graph.size());        // owned, empty once freed
  std::vector<const Tensor*> found(graph.size());  // what consumers read: owned, or the caller's
  std::vector<size_t> uses_left(graph.size());
  for (size_t i = 0; i < input_ids.size(); ++i) found[input_ids[i]] = inputs[i];
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    uses_left[id] = graph.Consumers(id).size() + (graph.IsOutput(id) ? 1 : 0);
  }
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    if (found[id] != nullptr) continue;
    ThrowIfStopped(stop);
    const std::vector<Graph::NodeId> sources = graph.Inputs(id);
    std::vector<const Tensor*> arguments;
    arguments.reserve(sources.size());
    for (const Graph::NodeId source : sources) arguments.push_back(found[source]);
    values[id] = graph.node(id).op->Reference(arguments);
    found[id] = &values[id];
    TILESMITH_CHECK(values[id].shape() == graph.node(id).shape, "node {}: {} instead of {}",
                    graph.node(id).name, ShapeToString(values[id].shape()),
                    ShapeToString(graph.node(id).shape));
    for (const Graph::NodeId source : std::set(sources.begin(), sources.end())) {
      if (--uses_left[source] == 0) values[source] = Tensor();
    }
  }

  std::vector<Tensor> results;
  for (const Graph::NodeId id : graph.outputs()) results.push_back(*found[id]);
  return results;
}

}  // namespace tilesmith
