#include "graph_tuner/plan/fused_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tilesmith {

FusedNodes FindFusedNodes(const Graph& graph, const Plan& plan) {
  const std::vector<FusablePair> pairs = FusablePairs(graph);
  std::map<std::string_view, const NodePlan*> planned;
  for (const NodePlan& node : plan.nodes) planned[node.node] = &node;
  FusedNodes fused;
  for (const NodePlan& node : plan.nodes) {
    if (node.fused_into.empty()) continue;
    const auto pair = std::ranges::find_if(pairs, [&](const FusablePair& candidate) {
      return graph.node(candidate.first).name == node.node &&
             graph.node(candidate.conv).name == node.fused_into;
    });
    if (pair == pairs.end())
      RefusePlan(fmt::format("node \"{}\" cannot be fused into \"{}\"", node.node, node.fused_into));
    const auto conv = planned.find(node.fused_into);
    if (conv == planned.end() || !conv->second->record || !(conv->second->record->workload == pair->workload))
      RefusePlan(fmt::format("node \"{}\" is fused into \"{}\", which has no record of {}", node.node,
                             node.fused_into, WorkloadToString(pair->workload)));
    fused.emplace(pair->conv, *pair);
  }
  for (const NodePlan& node : plan.nodes) {
    const auto id = graph.Find(node.node);
    if (node.record && node.record->workload.fused() && !(id && fused.contains(*id)))
      RefusePlan(fmt::format("nothing is fused into node \"{}\", its record is of {}", node.node,
                             WorkloadToString(node.record->workload)));
  }
  return fused;
}

}  // namespace tilesmith
