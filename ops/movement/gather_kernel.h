// The kernel of Gather, in plain layout.
#pragma once

#include <memory>

#include "ops/base/op.h"

namespace tilesmith {

// GatherOp's formula along `axis`, for elements of any type and indices of any integer type. An index outside
// of the axis takes the nearest element: a kernel cannot throw.
std::unique_ptr<Kernel> MakeGatherKernel(const KernelRequest& request, int64_t axis);

}  // namespace tilesmith
