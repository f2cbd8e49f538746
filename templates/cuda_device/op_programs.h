// CUDA programs of layout transforms and of ops other than convolutions.
#pragma once

#include <optional>

#include "ops/base/op.h"
#include "templates/cuda/program.h"

namespace tilesmith::cuda {

// One input, one output: the same tensor of floats, bf16 or bytes in another layout, of floats and bf16 also
// in the other type. None for other types.
std::optional<CudaProgram> TransformProgram(const Shape& shape, const Layout& from, const Layout& to);

// The program of an op, which its type's entry in op_programs.cc makes:
//
//   pooling, activations, scale and shift, arithmetic on two tensors with broadcasting: of floats and bf16,
//   in every layout that the op runs in; concats of channels also of bytes; transposes, slices, pads and
//   repetitions of floats and bf16, in plain order and NHWC, as are functions; resizing of both in any order;
//   choices by indices, concats along any axis, arithmetic on tensors of any shapes, reductions, softmax,
//   normalizations, batches of matrix products, attention: of floats in plain order.
//
// None for anything else, for more than six axes that do not fall together, and for 2^31 elements. An index
// outside of its axis chooses NaN.
std::optional<CudaProgram> ProgramOf(const Op& op, const KernelRequest& request);

}  // namespace tilesmith::cuda
