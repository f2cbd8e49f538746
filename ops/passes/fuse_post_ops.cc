#include <set>

#include "ops/elementwise/activations.h"
#include "ops/elementwise/binary.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

OpPtr Fuse(const Op& producer, const Op& consumer, const Shape&) {
  const auto* op = dynamic_cast<const ActivationOp*>(&consumer);
  return op == nullptr || !op->activation().fusable() ? nullptr : producer.WithActivation(op->activation());
}

}  // namespace

Graph FuseActivation(const Graph& graph) { return FuseIntoProducers(graph, Fuse); }
namespace {

using NodeId = Graph::NodeId;

// Its only use being the Add, the other operand cannot depend on it, and computing it at the place of the Add
// is no cycle.
bool CanTakeResidual(const Graph& graph, NodeId id) {
  return UsedOnce(graph, id) && graph.node(id).op->WithResidual() != nullptr;
}

struct Residual {
  NodeId conv = 0;
  int other_slot = 0;  // of the Add, where the residual comes in
};

std::optional<Residual> ResidualOf(const Graph& graph, NodeId id) {
  const BinaryOp* add = graph.As<BinaryOp>(id);
  if (add == nullptr || add->kind() != BinaryKind::kAdd) return std::nullopt;
  const std::vector<Shape> shapes = graph.InputShapes(id);
  const std::vector<NodeId> inputs = graph.Inputs(id);
  if (shapes[0] != shapes[1]) return std::nullopt;
  const int later = inputs[1] > inputs[0] ? 1 : 0;
  for (const int slot : {later, 1 - later}) {
    if (CanTakeResidual(graph, inputs[slot])) return Residual{inputs[slot], 1 - slot};
  }
  return std::nullopt;
}

}  // namespace

Graph FuseResidual(const Graph& graph) {
  std::set<NodeId> moved;  // convs that are emitted at the place of their Add
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (const auto residual = ResidualOf(graph, id)) moved.insert(residual->conv);
  }
  std::vector<NodeId> data(graph.size());  // of each moved conv, its input in the result
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        if (moved.contains(id)) return data[id] = inputs[0];  // stands in; only the Add would read it
        const std::optional<Residual> residual = ResidualOf(graph, id);
        if (!residual) return std::nullopt;
        const NodeId named = graph.IsOutput(id) ? id : residual->conv;
        return result.Add(graph.node(named).name, graph.node(residual->conv).op->WithResidual(),
                          {data[residual->conv], inputs[residual->other_slot]});
      });
}

}  // namespace tilesmith
