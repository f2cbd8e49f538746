#include "ops/passes/nest_concats.h"

#include <map>
#include <utility>

#include "ops/nodes/concat.h"

namespace tilesmith {

Graph NestConcats(const Graph& graph) {
  using NodeId = Graph::NodeId;
  using Key = std::pair<int64_t, std::vector<NodeId>>;  // axis, inputs in the new graph
  std::map<Key, NodeId> known;
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        const Node& node = graph.node(id);
        const auto* concat = dynamic_cast<const ConcatOp*>(node.op.get());
        if (!concat) return std::nullopt;
        std::vector<NodeId> nested = inputs;
        for (size_t length = inputs.size() - 1; length >= 2; --length) {
          const auto prefix = known.find({concat->axis(), {inputs.begin(), inputs.begin() + long(length)}});
          if (prefix == known.end()) continue;
          nested.assign(inputs.begin() + long(length), inputs.end());
          nested.insert(nested.begin(), prefix->second);
          break;
        }
        const NodeId made = result.Add(node.name, node.op, nested);
        known.emplace(Key{concat->axis(), inputs}, made);
        return made;
      });
}

}  // namespace tilesmith
