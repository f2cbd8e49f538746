// Pooling kernels in any layout.
#pragma once

#include <memory>

#include "ops/nodes/pool.h"

namespace tilesmith {

// PoolOp's formula; a task is one output row of one block. The mean is a float sum divided once.
std::unique_ptr<Kernel> MakePoolKernel(const KernelRequest& request, const PoolWindow& window);
// GlobalPoolOp's formula; a task is up to 64 channels of one image.
std::unique_ptr<Kernel> MakeGlobalPoolKernel(const KernelRequest& request, PoolKind kind);

}  // namespace tilesmith
