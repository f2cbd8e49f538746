// Who wrote what: how many bytes of a network change hands, which is what its threads wait for where cores
// are far from each other.
//
// A thread owns the part of a tensor that its share of the writing step lies in. A step reads, for the part
// of the result that a thread computes: of a convolution's input the rows that its kernel reaches, of all
// channels of its groups; of a tensor as large as the result the same part; of one with other rows the same
// part of the height; of anything else all. Halo rows of fused convolutions and of pooling, weights, scratch
// and what the caller gives are not counted, nor is what a region's steps read of each other: of that a
// thread computes what it reads.
#pragma once

#include <span>
#include <vector>

#include "graph_tuner/executor/program.h"
#include "layouts/base/split.h"
#include "ops/conv/workload.h"

namespace tilesmith {

struct StepGrids {
  TaskGrid reads, writes;              // of the stage that reads the inputs and of the one that writes
  const ConvWorkload* conv = nullptr;  // null for steps that are none
};

// The result has for each step the bytes that a thread reads and another thread wrote, of all threads
// together. Shares that have no place count as another thread's. `grids`: by step.
std::vector<double> CrossedBytes(const Program& program, std::span<const StepGrids> grids, int threads);

}  // namespace tilesmith
