// The kernel of softmax, in plain layout.
#pragma once

#include <memory>

#include "ops/base/op.h"

namespace tilesmith {

// Softmax over axes first_axis to the last; the precondition first_axis >= 1 keeps images apart.
std::unique_ptr<Kernel> MakeSoftmaxKernel(const KernelRequest& request, int64_t first_axis);

}  // namespace tilesmith
