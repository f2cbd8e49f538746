// An op that runs once, on tensors whose sizes nobody knew before.
#pragma once

#include <span>

#include "ops/base/op.h"
#include "ops/base/op_machine.h"

namespace tilesmith {

// What the op makes of plain tensors, by its kernel (MakeOpKernel). Throws as InferShape and OutputType do.
// Thread-safe; the calling thread is not in a parallel region.
Tensor RunOnce(const Op& op, std::span<const Tensor* const> inputs, const OpMachine& machine);

}  // namespace tilesmith
