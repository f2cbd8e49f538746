#include "graph_tuner/plan/plan_corrections.h"

#include "graph_tuner/problem/build_problem.h"

namespace tilesmith {

Corrections CorrectionsOf(const Graph& graph, const Plan& plan, CostSource& costs) {
  if (!plan.corrections.empty()) return plan.corrections;
  Corrections corrections;
  for (const NodePlan& node : plan.nodes) {
    if (!node.fused_into.empty()) continue;
    if (node.record) {
      corrections.LearnConv(node.node, *node.record, node.predicted_seconds);
      continue;
    }
    const Graph::NodeId id = graph.Find(node.node).value();
    const double stand_alone = TolerantSeconds(graph, id, node.layouts.in, costs);
    corrections.LearnOp(node.node, node.layouts.in, stand_alone, node.predicted_seconds);
  }
  for (const TransformPlan& transform : plan.transforms) {
    const Shape& shape = graph.node(graph.Find(transform.tensor).value()).shape;
    corrections.LearnConversion(transform.tensor, ConversionOf(shape, transform.from, transform.to),
                                FillSeconds(shape, transform.from, transform.to, costs),
                                transform.predicted_seconds);
  }
  return corrections;
}

}  // namespace tilesmith
