#include "ops/elementwise/batch_norm.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

// s2 * (s1 * x + b1) + b2 = (s2 * s1) * x + (s2 * b1 + b2)
OpPtr Merge(const Op& producer, const Op& consumer, const Shape&) {
  const auto* first = dynamic_cast<const ScaleShiftOp*>(&producer);
  const auto* second = dynamic_cast<const ScaleShiftOp*>(&consumer);
  if (first == nullptr || second == nullptr || first->activation().kind != ActivationKind::kNone) {
    return nullptr;
  }
  std::vector<float> scale = second->scale(), shift = second->shift();
  for (size_t c = 0; c < scale.size(); ++c) {
    const double factor = second->scale()[c];
    scale[c] = static_cast<float>(factor * first->scale()[c]);
    shift[c] = static_cast<float>(factor * first->shift()[c] + second->shift()[c]);
  }
  return std::make_shared<ScaleShiftOp>(std::move(scale), std::move(shift), second->activation());
}

}  // namespace

Graph MergeScaleShifts(const Graph& graph) { return FuseIntoProducers(graph, Merge); }

}  // namespace tilesmith
