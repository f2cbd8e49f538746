// CUDA programs of layout transforms and of ops other than convolutions.
#pragma once

#include <optional>

#include "ops/base/op.h"
#include "templates/cuda/program.h"

namespace tilesmith::cuda {

// One input, one output: the same tensor of floats in another layout. None for other types.
std::optional<CudaProgram> TransformProgram(const Shape& shape, const Layout& from, const Layout& to);

// Pooling, activations, scale and shift, arithmetic on two tensors with broadcasting, concats of channels: of
// floats, in every layout that the op runs in. None for anything else.
std::optional<CudaProgram> ProgramOf(const Op& op, const KernelRequest& request);

}  // namespace tilesmith::cuda
