// Kernels of dense layers, in plain layout.
#pragma once

#include <memory>

#include "ops/base/activation.h"
#include "ops/base/op.h"

namespace tilesmith {

// GemmOp's formula: weights {K, N}, packed here; bias null or N floats. Tasks are panels of 32 columns times
// groups of 48 rows, each streaming its panel once: at batch 1 the time is that of reading the weights.
std::unique_ptr<Kernel> MakeGemmKernel(const KernelRequest& request, const Tensor& weights,
                                       const Tensor* bias, const Activation& activation);

}  // namespace tilesmith
