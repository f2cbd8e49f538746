// How large the terms of a conv's sums are, which is what its rounding errors are held against.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/conv/conv.h"

namespace tilesmith {

// The largest sum of the absolute values of an output's terms, bias and residual left out.
inline double LargestMagnitude(const ConvWorkload& workload, const ConvData& data) {
  const auto magnitudes = [](Tensor tensor) {
    std::transform(tensor.floats(), tensor.floats() + tensor.size(), tensor.floats(),
                   [](float value) { return std::abs(value); });
    return tensor;
  };
  ConvWorkload plain = workload;
  plain.post = {};
  for (ConvWorkload& before : plain.before) before.post = {};
  const Tensor input = magnitudes(data.input), weights = magnitudes(data.weights);
  const Tensor before_weights = data.before_weights ? magnitudes(*data.before_weights) : Tensor();
  const Tensor sums =
      ReferenceConv(plain, {.input = &input,
                            .weights = &weights,
                            .before_weights = data.before_weights ? &before_weights : nullptr});
  return *std::max_element(sums.floats(), sums.floats() + sums.size());
}

}  // namespace tilesmith
