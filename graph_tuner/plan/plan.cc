#include "graph_tuner/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/error.h"
#include "layouts/base/stable_hash.h"

namespace tilesmith {

LayoutPair NodeLayouts(const Graph& graph, Graph::NodeId id, const Layout& in, const Layout& out) {
  const std::vector<Graph::NodeId> inputs = graph.Inputs(id);
  return {inputs.empty() ? in : TensorLayout(graph.node(inputs[0]), in), TensorLayout(graph.node(id), out)};
}

double KnownPrediction(const Plan& plan) {
  const bool known = std::ranges::all_of(plan.nodes, [](const NodePlan& node) {
    return !node.record || node.predicted_seconds > node.crossing_seconds;
  });
  return known ? plan.predicted_seconds : 0;
}

PlacedPrediction PredictionFor(const Plan& plan, const CorePlacement& seen) {
  const PlacedPrediction own = {plan.placement, KnownPrediction(plan)};
  const bool is_of_own = !(seen.barrier_seconds > 0) || AreAlike(seen, plan.placement);
  if (own.seconds == 0 || plan.at_distances.empty() || is_of_own) return own;
  return *std::ranges::min_element(plan.at_distances, {}, [&](const PlacedPrediction& prediction) {
    return DistanceGap(prediction.placement.barrier_seconds, seen.barrier_seconds);
  });
}

bool SameSchedule(const NodePlan& a, const NodePlan& b) {
  if (a.node != b.node || a.layouts != b.layouts || a.split != b.split || a.fused_into != b.fused_into)
    return false;
  if (a.record.has_value() != b.record.has_value()) return false;
  return !a.record ||
         (a.record->workload == b.record->workload && a.record->template_name == b.record->template_name &&
          a.record->config == b.record->config);
}

bool SameSchedules(const Plan& a, const Plan& b) {
  return std::ranges::equal(a.nodes, b.nodes, SameSchedule);
}

std::string PlanHash(const Plan& plan) {
  StableHash hash;
  hash.Add(plan.graph_hash);
  hash.Add(static_cast<int64_t>(plan.threads));
  for (const NodePlan& node : plan.nodes) {
    for (const std::string& text : {node.node, node.layouts.in.ToString(), node.layouts.out.ToString(),
                                    std::string(SplitName(node.split)), node.fused_into})
      hash.Add(text);
    if (!node.record) continue;
    for (const std::string& text : {WorkloadToString(node.record->workload), node.record->template_name,
                                    node.record->config.ToString()})
      hash.Add(text);
  }
  return fmt::format("{:016x}", hash.value());
}

void RefusePlan(const std::string& reason) { throw Error(ErrorCode::kUsage, "plan: " + reason); }

}  // namespace tilesmith
