#include "ops/conv/conv.h"
#include "ops/passes/dense_image.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {
using NodeId = Graph::NodeId;
}

Graph LowerDense(const Graph& graph) {
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        const GemmOp* gemm = OpAs<GemmOp>(graph, id);
        if (gemm == nullptr) return std::nullopt;
        const Node& node = graph.node(id);
        const std::optional<ConvWorkload> w = DenseWorkload(*gemm, node.shape);
        if (!w) return std::nullopt;
        return AddDense(result, {node.name, node.shape, graph.IsOutput(id), *w},
                        std::make_shared<ConvOp>(*w, gemm->weights(), gemm->bias()), inputs);
      });
}

}  // namespace tilesmith
