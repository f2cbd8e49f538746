// Kernels that resize images, in any layout.
#pragma once

#include <memory>

#include "ops/nodes/resize.h"

namespace tilesmith {

// ResizeOp's formula, where only H and W change; a task is one output row of one block.
std::unique_ptr<Kernel> MakeResizeKernel(const KernelRequest& request, const ResizeParams& params);

}  // namespace tilesmith
