#include "graph_tuner/problem/error_price.h"

#include "templates/base/conv_template.h"
#include "tuner/precision.h"

namespace tilesmith {

double ErrorBudget::Of(const std::string& conv, const Record& record) const {
  const auto found = squares.find(conv);
  if (found == squares.end() || !IsNarrow(record)) return 0;
  const ConvTemplate* conv_template = KnownConvTemplate(record.template_name);
  return found->second * (conv_template ? conv_template->Bf16Noise(record.workload, record.config) : 1);
}

ErrorSquares ErrorBudget::SquaresOf(const Plan& plan) const {
  ErrorSquares of_plan;
  for (const NodePlan& node : plan.nodes) {
    const double square = node.record ? Of(node.node, *node.record) : 0;
    if (square > 0) of_plan[node.node] = square;
  }
  return of_plan;
}

double ErrorBudget::Of(const Plan& plan) const {
  double sum = 0;
  for (const auto& [conv, square] : SquaresOf(plan)) sum += square;
  return sum;
}

double WeightPrice::Of(const Record& record) const {
  return seconds_per_byte > 0 ? seconds_per_byte * PackedWeightBytes(record, cpu) : 0;
}

}  // namespace tilesmith
