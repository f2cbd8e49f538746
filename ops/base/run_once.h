// An op that runs once, on tensors whose sizes nobody knew before.
#pragma once

#include <span>

#include "ops/base/op.h"

namespace tilesmith {

// What the op makes of plain tensors, by its kernel on this CPU (MakeOpKernel). Throws as InferShape and
// OutputType do. Thread-safe; the calling thread is not in a parallel region.
Tensor RunOnce(const Op& op, std::span<const Tensor* const> inputs, int threads);

}  // namespace tilesmith
