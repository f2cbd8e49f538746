// CUDA programs of ops on plain tensors whose elements are walked over in any order.
#pragma once

#include <optional>

#include "ops/base/op.h"
#include "templates/cuda/program.h"

namespace tilesmith::cuda {

// Transposes, slices, pads, repetitions, choices by indices, concats along any axis, arithmetic on two
// tensors of any shapes, functions, reductions, softmax, normalizations, batches of matrix products,
// attention, and resizing: of floats, the first four of bf16 as well, in plain order, resizing in any, the
// first four and functions in NHWC as well. None for anything else, for more than six axes that do not fall
// together, and for 2^31 elements. An index outside of its axis chooses NaN.
std::optional<CudaProgram> WalkProgram(const Op& op, const KernelRequest& request);

}  // namespace tilesmith::cuda
