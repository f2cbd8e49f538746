// CUDA programs of layout transforms and of ops other than convolutions.
#pragma once

#include <optional>

#include "ops/base/op.h"
#include "templates/cuda/program.h"

namespace tilesmith::cuda {

// One input, one output: the same tensor of floats, bf16 or bytes in another layout, of floats and bf16 also
// in the other type. None for other types.
std::optional<CudaProgram> TransformProgram(const Shape& shape, const Layout& from, const Layout& to);

// Pooling, activations, scale and shift, arithmetic on two tensors with broadcasting, concats of channels: of
// floats, in every layout that the op runs in; pooling and concats of bf16, concats of bytes as well. None
// for anything else that is not in walk_programs.h.
std::optional<CudaProgram> ProgramOf(const Op& op, const KernelRequest& request);

}  // namespace tilesmith::cuda
