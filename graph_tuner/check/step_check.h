// One step's output beside the reference's.
#pragma once

#include <string>

#include "graph_tuner/executor/executor.h"

namespace tilesmith {

struct StepCheck {
  double difference = 0, allowed = 0;  // at the element nearest to its bound, or furthest beyond it
  int64_t spread = 0;                  // elements that are not finite where the exact one is
  std::string wrong;                   // "", or what is wrong
};

// Elements of other types than f32 must be the same. bound: what each element may be off; where that is not
// finite, anything. With may_spread, an element may be NaN or infinite where the exact one is finite.
StepCheck CompareStep(const Tensor& got, const Tensor& exact, const Tensor& bound, bool may_spread);

}  // namespace tilesmith
