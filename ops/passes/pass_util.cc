#include "ops/passes/pass_util.h"

#include <algorithm>

#include "ops/conv/conv.h"
#include "ops/elementwise/binary.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// What becomes of each node: the op it ends up with, the node whose inputs that op takes, and whether a
// consumer has swallowed it.
struct Fusion {
  OpPtr op;
  NodeId head = 0;
  bool swallowed = false;
};

std::vector<Fusion> PlanFusions(const Graph& graph, const FusePair& fuse) {
  std::vector<Fusion> plan(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    plan[id] = {graph.node(id).op, id};
    const std::vector<NodeId> inputs = graph.Inputs(id);
    if (inputs.size() != 1 || !UsedOnce(graph, inputs[0])) continue;
    Fusion& producer = plan[inputs[0]];
    OpPtr fused = fuse(*producer.op, *plan[id].op, graph.node(inputs[0]).shape);
    if (fused == nullptr) continue;
    plan[id] = {std::move(fused), producer.head};
    producer.swallowed = true;
  }
  return plan;
}

}  // namespace

const ConvWorkload* ConvReading(const Graph& graph, NodeId consumer, NodeId tensor) {
  const ConvOp* conv = OpAs<ConvOp>(graph, consumer);
  if (conv == nullptr) return nullptr;
  const std::vector<NodeId> inputs = graph.Inputs(consumer);
  return inputs[0] == tensor && std::ranges::count(inputs, tensor) == 1 ? &conv->workload() : nullptr;
}

bool IsBinary(const Graph& graph, NodeId id, BinaryKind kind) {
  const BinaryOp* op = OpAs<BinaryOp>(graph, id);
  return op != nullptr && op->kind() == kind && boost::in_degree(id, graph.boost()) == 2;
}

std::optional<float> Common(const std::vector<float>& values) {
  const bool uniform = std::ranges::all_of(values, [&](float value) { return value == values[0]; });
  return values.empty() || !uniform ? std::nullopt : std::optional(values[0]);
}

bool UsedOnce(const Graph& graph, NodeId id) {
  return boost::out_degree(id, graph.boost()) == 1 && !graph.IsOutput(id);
}

Graph FuseIntoProducers(const Graph& graph, const FusePair& fuse) {
  const std::vector<Fusion> plan = PlanFusions(graph, fuse);
  std::vector<std::vector<NodeId>> mapped_inputs(graph.size());
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        mapped_inputs[id] = inputs;
        const Fusion& fusion = plan[id];
        if (fusion.swallowed) return inputs[0];  // never read: the consumer takes the head's inputs
        if (fusion.head == id) return std::nullopt;
        const NodeId named = graph.IsOutput(id) ? id : fusion.head;
        return result.Add(graph.node(named).name, fusion.op, mapped_inputs[fusion.head]);
      });
}

}  // namespace tilesmith
