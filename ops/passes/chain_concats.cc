#include <map>

#include "ops/movement/concat.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

}  // namespace

Graph ChainConcats(const Graph& graph) {
  std::map<std::vector<NodeId>, NodeId> earlier;  // inputs of a concat, in the result, before any rewriting
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        const ConcatOp* concat = OpAs<ConcatOp>(graph, id);
        if (concat == nullptr || concat->axis() != 1) return std::nullopt;
        std::optional<NodeId> node;
        for (size_t length = inputs.size(); length >= 2 && !node; --length) {
          const auto found = earlier.find({inputs.begin(), inputs.begin() + length});
          if (found == earlier.end()) continue;
          if (length == inputs.size()) {
            if (!graph.IsOutput(id)) return found->second;
            continue;  // a repeated output needs a node of its own
          }
          std::vector<NodeId> rest = {found->second};
          rest.insert(rest.end(), inputs.begin() + length, inputs.end());
          node = result.Add(graph.node(id).name, graph.node(id).op, rest);
        }
        if (!node) node = result.Add(graph.node(id).name, graph.node(id).op, inputs);
        earlier.emplace(inputs, *node);
        return node;
      });
}

}  // namespace tilesmith
