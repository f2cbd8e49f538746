#include "graph_tuner/plan/planned_conversions.h"

#include "graph_tuner/costs/layout_forms.h"

namespace tilesmith {

std::map<ConversionKey, PlannedConversion> PlannedConversions(const Graph& graph, const Plan& plan) {
  std::map<ConversionKey, PlannedConversion> planned;
  for (const TransformPlan& transform : plan.transforms) {
    const auto tensor = graph.Find(transform.tensor);
    if (!tensor.has_value()) continue;
    const LayoutPair conversion = ConversionOf(graph.node(*tensor).shape, transform.from, transform.to);
    PlannedConversion& entry = planned[{transform.tensor, conversion}];
    entry.seconds = transform.predicted_seconds;
    entry.crossing_seconds = transform.crossing_seconds;
    ++entry.times;
  }
  return planned;
}

}  // namespace tilesmith
