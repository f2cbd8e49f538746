#include "graph_tuner/problem/error_price.h"

#include "tuner/precision.h"

namespace tilesmith {

double ErrorBudget::Of(const std::string& conv, const Record& record) const {
  const auto found = squares.find(conv);
  return found != squares.end() && IsNarrow(record) ? found->second : 0;
}

double ErrorBudget::Of(const Plan& plan) const {
  double sum = 0;
  for (const NodePlan& node : plan.nodes)
    if (node.record) sum += Of(node.node, *node.record);
  return sum;
}

}  // namespace tilesmith
