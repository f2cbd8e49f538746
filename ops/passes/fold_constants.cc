#include "ops/base/input.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {

Graph FoldConstants(const Graph& graph) {
  return RewriteGraph(graph,
                      [&](Graph::NodeId id, const std::vector<Graph::NodeId>& inputs,
                          Graph& result) -> std::optional<Graph::NodeId> {
                        std::vector<const Tensor*> values;
                        for (const Graph::NodeId input : inputs) {
                          const ConstantOp* constant = OpAs<ConstantOp>(result, input);
                          if (constant == nullptr) return std::nullopt;
                          values.push_back(constant->value().get());
                        }
                        if (values.empty()) return std::nullopt;
                        const Node& node = graph.node(id);
                        auto folded = std::make_shared<const Tensor>(node.op->Reference(values));
                        return result.Add(node.name, std::make_shared<ConstantOp>(folded), {});
                      });
}

}  // namespace tilesmith
