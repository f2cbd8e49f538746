// The kernel of Gather, in plain layout.
#pragma once

#include <memory>

#include "ops/base/op.h"

namespace tilesmith {

// GatherOp's formula along `axis`, for elements of any type and indices of any integer type. Running
// throws Error(kBadModel) naming an index outside of the axis.
std::unique_ptr<Kernel> MakeGatherKernel(const KernelRequest& request, int64_t axis);

}  // namespace tilesmith
