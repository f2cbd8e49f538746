// Kernels of reductions, in plain layout.
#pragma once

#include <memory>
#include <vector>

#include "ops/base/op.h"
#include "ops/reduce/reduce.h"

namespace tilesmith {

// ReduceOp's formula. Tasks are parts of the output: one output alone is one task, however large the input.
std::unique_ptr<Kernel> MakeReduceKernel(const KernelRequest& request, const ReduceOp& op);

}  // namespace tilesmith
