// CUDA programs of ops on plain tensors whose elements are walked over in any order.
#pragma once

#include <optional>

#include "ops/base/op.h"
#include "templates/cuda/program.h"

namespace tilesmith::cuda {

// Transposes, slices, pads, repetitions, concats along any axis, arithmetic on two tensors of any shapes,
// functions, reductions, softmax, normalizations, batches of matrix products, attention without a mask, and
// resizing: of floats, in plain order, resizing in any, slices and functions in NHWC as well. None for
// anything else, for more than six axes that do not fall together, and for 2^31 elements.
std::optional<CudaProgram> WalkProgram(const Op& op, const KernelRequest& request);

}  // namespace tilesmith::cuda
