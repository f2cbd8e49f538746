#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// x + x * gate
struct GatedSum {
  NodeId product = 0;
  size_t x = 0, gate = 0;  // inputs of the product
};

std::optional<GatedSum> GatedSumOf(const Graph& graph, NodeId id) {
  if (!IsBinary(graph, id, BinaryKind::kAdd)) return std::nullopt;
  const std::vector<NodeId> terms = graph.Inputs(id);
  for (const size_t slot : {size_t{0}, size_t{1}}) {
    const NodeId x = terms[slot], product = terms[1 - slot];
    if (!IsBinary(graph, product, BinaryKind::kMul) || !UsedOnce(graph, product)) continue;
    const Shape& shape = graph.node(x).shape;
    if (shape.size() != 4) continue;
    const std::vector<NodeId> factors = graph.Inputs(product);
    for (const size_t gate : {size_t{0}, size_t{1}}) {
      const bool per_channel = graph.node(factors[gate]).shape == Shape{shape[0], shape[1], 1, 1};
      if (factors[1 - gate] == x && per_channel) return GatedSum{product, 1 - gate, gate};
    }
  }
  return std::nullopt;
}

}  // namespace

Graph MergeGatedSums(const Graph& graph) {
  std::vector<std::vector<NodeId>> mapped(graph.size());  // the inputs, in the result
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        mapped[id] = inputs;
        const std::optional<GatedSum> sum = GatedSumOf(graph, id);
        if (!sum) return std::nullopt;
        const std::vector<NodeId>& factors = mapped[sum->product];
        const std::vector<float> ones(graph.node(id).shape[1], 1.0f);
        const NodeId gate = result.Add(graph.node(sum->product).name + ".plus_one",
                                       std::make_shared<ScaleShiftOp>(ones, ones), {factors[sum->gate]});
        return result.Add(graph.node(id).name, std::make_shared<BinaryOp>(BinaryKind::kMul),
                          {factors[sum->x], gate});
      });
}

}  // namespace tilesmith
