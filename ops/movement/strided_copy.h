// Copies between tensors that lie differently: transposed, sliced, repeated, or beside one another. Elements
// of any size are moved at about the speed of memory, whatever their order.
#pragma once

#include <memory>
#include <vector>

#include "ops/base/op.h"

namespace tilesmith {

// One loop of a copy: from one iteration to the next, how far it moves along an axis of the input (none: it
// repeats) and along one of the output.
struct CopyLoop {
  int64_t size = 1;
  int in_axis = -1;
  int64_t in_step = 1;
  int out_axis = 0;
};

// A part of the output that comes from one input, with where it starts along each axis of both; empty: at 0.
struct CopyRegion {
  int input = 0;
  std::vector<CopyLoop> loops;
  std::vector<int64_t> in_start = {}, out_start = {};
};

// Plain layout, elements of 1, 2, 4 or 8 bytes, the inputs' and the output's alike. Preconditions: regions
// stay inside of their tensors, and no element is in two.
std::unique_ptr<Kernel> MakeCopyKernel(const KernelRequest& request, std::vector<CopyRegion> regions);

}  // namespace tilesmith
