// Kernels of dense layers and softmax, in plain layout.
#pragma once

#include <memory>

#include "ops/base/activation.h"
#include "ops/base/op.h"

namespace tilesmith {

// GemmOp's formula: weights {K, N}, packed here; bias null or N floats. Tasks are panels of 32 columns times
// groups of 48 rows, each streaming its panel once: at batch 1 the time is that of reading the weights.
std::unique_ptr<Kernel> MakeGemmKernel(const KernelRequest& request, const Tensor& weights,
                                       const Tensor* bias, const Activation& activation);
// Softmax over axes first_axis to the last; the precondition first_axis >= 1 keeps images apart.
std::unique_ptr<Kernel> MakeSoftmaxKernel(const KernelRequest& request, int64_t first_axis);

}  // namespace tilesmith
