// Kernels that only move elements; strided_copy.h has those for plain layout.
#pragma once

#include <memory>
#include <vector>

#include "ops/base/op.h"
#include "ops/movement/depth_to_space.h"
#include "ops/movement/indexing.h"
#include "ops/movement/pad.h"

namespace tilesmith {

// Concatenation along channels in any layout, inputs that do not end on a block boundary being shifted lane
// by lane.
std::unique_ptr<Kernel> MakeConcatKernel(const KernelRequest& request);
// Plain layout, rank >= 1: PadOp's formula.
std::unique_ptr<Kernel> MakePadKernel(const KernelRequest& request, const PadOp& op);
// Any layout, rank <= 4: output position i along each axis is input position start + i * step.
std::unique_ptr<Kernel> MakeSliceKernel(const KernelRequest& request, const std::vector<SliceAxis>& axes);
// Any layout: DepthToSpaceOp's formula.
std::unique_ptr<Kernel> MakeDepthToSpaceKernel(const KernelRequest& request, const DepthToSpaceOp& op);
// Plain layout: the same elements, of any type, in the same order, whatever the two shapes.
std::unique_ptr<Kernel> MakeViewKernel(const KernelRequest& request);

}  // namespace tilesmith
