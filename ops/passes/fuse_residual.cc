#include <set>

#include "ops/conv/conv.h"
#include "ops/dense/gemm.h"
#include "ops/elementwise/binary.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// The conv or dense layer with a residual; null where it cannot take one. The sum comes before the
// activation, so it may have neither yet.
OpPtr WithSum(const Op& op) {
  if (const auto* conv = dynamic_cast<const ConvOp*>(&op)) {
    ConvWorkload workload = conv->workload();
    if (workload.post.sum || workload.post.activation.kind != ActivationKind::kNone) return nullptr;
    workload.post.sum = true;
    return std::make_shared<ConvOp>(workload, conv->weights(), conv->bias());
  }
  if (const auto* gemm = dynamic_cast<const GemmOp*>(&op)) {
    if (gemm->sum() || gemm->activation().kind != ActivationKind::kNone) return nullptr;
    return std::make_shared<GemmOp>(gemm->weights(), gemm->bias(), Activation(), true);
  }
  return nullptr;
}

// Its only use being the Add, the other operand cannot depend on it, and computing it at the place of the Add
// is no cycle.
bool CanTakeResidual(const Graph& graph, NodeId id) {
  return UsedOnce(graph, id) && WithSum(*graph.node(id).op) != nullptr;
}

struct Residual {
  NodeId conv = 0;
  int other_slot = 0;  // of the Add, where the residual comes in
};

std::optional<Residual> ResidualOf(const Graph& graph, NodeId id) {
  const BinaryOp* add = OpAs<BinaryOp>(graph, id);
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
        return result.Add(graph.node(named).name, WithSum(*graph.node(residual->conv).op),
                          {data[residual->conv], inputs[residual->other_slot]});
      });
}

}  // namespace tilesmith
