// Kernels that only move floats.
#pragma once

#include <memory>
#include <vector>

#include "ops/nodes/pad.h"
#include "ops/op.h"

namespace tilesmith {

// Concatenation along channels, in any layout; inputs that do not end on a block boundary are shifted lane by
// lane.
std::unique_ptr<Kernel> MakeConcatKernel(const KernelRequest& request);
// Plain layout, rank >= 1: output axis a is input axis perm[a].
std::unique_ptr<Kernel> MakeTransposeKernel(const KernelRequest& request, const std::vector<int64_t>& perm);
// Plain layout, rank >= 1: PadOp's formula.
std::unique_ptr<Kernel> MakePadKernel(const KernelRequest& request, const PadOp& op);
// Plain layout: the same floats in the same order, whatever the two shapes.
std::unique_ptr<Kernel> MakeViewKernel(const KernelRequest& request);

}  // namespace tilesmith
