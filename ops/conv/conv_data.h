// Tensors for everything a conv workload computes on, for those who measure and test: made once, seen as what
// the reference takes and as what a template takes (templates/base/conv_template.h).
#pragma once

#include <functional>
#include <optional>

#include "ops/conv/conv.h"

namespace tilesmith {

struct ConvData {
  Tensor input, weights;
  std::optional<Tensor> bias, residual, scale, shift, before_weights, before_bias;

  // Valid while this lives where it is.
  ConvTensors tensors() const;
};

// Plain tensors of the workload's shapes, filled in the order of the members.
ConvData MakeConvData(const ConvWorkload& workload, const std::function<void(Tensor&)>& fill);

}  // namespace tilesmith
