// Elementwise kernels in any layout. The output may be the memory of an input of the same shape.
#pragma once

#include <memory>
#include <vector>

#include "ops/base/op.h"
#include "ops/elementwise/elementwise_loops.h"

namespace tilesmith {

// out = act(in)
std::unique_ptr<Kernel> MakeActivationKernel(const KernelRequest& request, const Activation& activation);
// out = e^in, plain layout; within 8 ulp, 0 and infinity beyond what a float holds
std::unique_ptr<Kernel> MakeExpKernel(const KernelRequest& request);
// out = act(scale[c] * in + shift[c])
std::unique_ptr<Kernel> MakeScaleShiftKernel(const KernelRequest& request, const std::vector<float>& scale,
                                             const std::vector<float>& shift, const Activation& activation);
// out = in >= 0 ? in : slope[c] * in
std::unique_ptr<Kernel> MakePReluKernel(const KernelRequest& request, const std::vector<float>& slopes);
// out = in0 op in1 for equal shapes, or one of them {N, C, 1, 1} and the other {N, C, H, W}; see
// HasBinaryKernel.
std::unique_ptr<Kernel> MakeBinaryKernel(const KernelRequest& request, BinaryKind op);
bool HasBinaryKernel(std::span<const Shape> inputs);
// out = in0 + in1 + ..., equal shapes
std::unique_ptr<Kernel> MakeSumKernel(const KernelRequest& request);

}  // namespace tilesmith
