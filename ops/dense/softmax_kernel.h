// Kernels of softmax, in plain layout.
#pragma once

#include <memory>

#include "ops/base/op.h"

namespace tilesmith {

// Softmax, or its logarithm, over axes first_axis..last_axis together. Tasks are rows, or where the last axis
// is not among them, strips of columns. Precondition: where several images are taken together, first_axis ==
// last_axis.
std::unique_ptr<Kernel> MakeSoftmaxKernel(const KernelRequest& request, int64_t first_axis, int64_t last_axis,
                                          bool logarithm);

}  // namespace tilesmith
