// Elementwise kernels in any layout, of f32 or bf16, the same for all tensors of a request; those of bf16
// compute in f32 and round once, to nearest, ties to even; AVX-512 BF16 takes results below 2^-126 for zero.
// The output may be the memory of an input of the same shape.
#pragma once

#include <memory>
#include <vector>

#include "ops/base/op.h"
#include "ops/elementwise/elementwise_loops.h"

namespace tilesmith {

// out = act(in)
std::unique_ptr<Kernel> MakeActivationKernel(const KernelRequest& request, const Activation& activation);
// out = function(in)
std::unique_ptr<Kernel> MakeFunctionKernel(const KernelRequest& request, const Function& function);
// out = act(scale[c] * in + shift[c])
std::unique_ptr<Kernel> MakeScaleShiftKernel(const KernelRequest& request, const std::vector<float>& scale,
                                             const std::vector<float>& shift, const Activation& activation);
// out = in >= 0 ? in : slope[c] * in
std::unique_ptr<Kernel> MakePReluKernel(const KernelRequest& request, const std::vector<float>& slopes);
// Whether inputs of these shapes broadcast to the output's in this layout: in the plain one always, in others
// when all have the same rank, of at most 4, and either one channel or as many as the output.
bool BroadcastsIn(const Layout& layout, std::span<const Shape> inputs, const Shape& output);
// out = in0 op in1 with broadcasting; of more inputs, where their order does not matter, each with the result
// of those before. Precondition: BroadcastsIn.
std::unique_ptr<Kernel> MakeBinaryKernel(const KernelRequest& request, BinaryKind op);
// out = in0 + in1 + ..., equal shapes
std::unique_ptr<Kernel> MakeSumKernel(const KernelRequest& request);

}  // namespace tilesmith
