// Kernels between reals and the integers that stand for them, in any layout of either type.
#pragma once

#include <memory>

#include "ops/base/op.h"
#include "ops/base/quantization.h"

namespace tilesmith {

// Input f32, output of the quantization's type, or the other way round. Preconditions: in plain layout
// CheckFits; in others one scale, or one for each channel. Padding becomes zero.
std::unique_ptr<Kernel> MakeQuantizeKernel(const KernelRequest& request, const Quantization& quantization);
std::unique_ptr<Kernel> MakeDequantizeKernel(const KernelRequest& request, const Quantization& quantization);

}  // namespace tilesmith
