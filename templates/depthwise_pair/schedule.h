// A fused pair as numbers: the scratch that holds a tile of the middle tensor, and the tasks.
//
// The scratch is NCHW[vector]c: for each vector of middle channels of the task, rows of pixels.
#pragma once

#include <cstdint>

#include "templates/depthwise/schedule.h"
#include "templates/depthwise_pair/config.h"
#include "templates/direct/schedule.h"

namespace tilesmith::depthwise_pair {

struct RowRange {
  int64_t first = 0, last = 0;  // [first, last)
  int64_t size() const { return last - first; }
};

struct Schedule {
  PairKind kind = PairKind::kNone;
  DepthwisePairConfig config;
  depthwise::Schedule depthwise;
  direct::Schedule pointwise;  // of the pixels that one call computes, as one row

  int64_t scratch_rows = 0;     // of a plane
  int64_t scratch_vectors = 0;  // at most

  int64_t row_blocks() const { return depthwise.row_blocks(); }
  int64_t scratch_floats() const;  // per thread, whole cache lines
  // Rows of the middle tensor that row block `block` needs and that exist.
  RowRange MiddleRows(int64_t block) const;
  // Chunks of the 1x1 conv's output channels of part `part`.
  RowRange Chunks(int64_t part) const;
};

// A task is one row block and one part of the 1x1 conv's output channels of one image.
TaskGrid GridOf(const Schedule& schedule);
// The features of both convs together; the loop's are those of the 1x1 conv, where most of the work is.
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);

// Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it.
std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights);

Schedule MakeSchedule(const ConvWorkload& workload, const DepthwisePairConfig& config, const Target& cpu);

}  // namespace tilesmith::depthwise_pair
