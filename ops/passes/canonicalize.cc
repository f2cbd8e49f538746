#include <algorithm>

#include "ops/elementwise/activations.h"
#include "ops/elementwise/prelu.h"
#include "ops/movement/transpose.h"
#include "ops/movement/view.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

OpPtr AsLeakyRelu(const PReluOp& op) {
  const std::vector<float>& slopes = op.slopes();
  const bool uniform = std::ranges::all_of(slopes, [&](float slope) { return slope == slopes.front(); });
  if (slopes.empty() || !uniform) return nullptr;
  return std::make_shared<ActivationOp>(
      Activation{.kind = ActivationKind::kLeakyRelu, .alpha = slopes.front(), .beta = 0});
}

// The axes that matter, those longer than 1, stay in order: the elements stay where they are.
OpPtr AsReshape(const TransposeOp& op, const Shape& from, const Shape& to) {
  int64_t last = -1;
  for (const int64_t axis : op.perm()) {
    if (from[axis] == 1) continue;
    if (axis < last) return nullptr;
    last = axis;
  }
  return std::make_shared<ViewOp>("Reshape", to);
}

OpPtr Simpler(const Graph& graph, Graph::NodeId id) {
  if (const PReluOp* prelu = OpAs<PReluOp>(graph, id)) return AsLeakyRelu(*prelu);
  if (const TransposeOp* transpose = OpAs<TransposeOp>(graph, id)) {
    return AsReshape(*transpose, graph.InputShapes(id)[0], graph.node(id).shape);
  }
  return nullptr;
}

}  // namespace

Graph Canonicalize(const Graph& graph) {
  return RewriteGraph(graph,
                      [&](Graph::NodeId id, const std::vector<Graph::NodeId>& inputs,
                          Graph& result) -> std::optional<Graph::NodeId> {
                        OpPtr simpler = Simpler(graph, id);
                        if (simpler == nullptr) return std::nullopt;
                        return result.Add(graph.node(id).name, std::move(simpler), inputs);
                      });
}

}  // namespace tilesmith
