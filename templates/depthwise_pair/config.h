// A depthwise conv and a 1x1 conv fused, in either order: tile by tile, so that the middle tensor never
// leaves the cache. Depthwise first: a task computes some rows of all channels into a scratch and the 1x1
// conv from there. 1x1 first: a task computes the rows that its depthwise rows need, for some channels;
// neighbouring tasks compute the rows at their common border both. Rows and columns outside the middle tensor
// are zero, not what the first conv would make of zeros. Original.
//
// The depthwise_pair template's knobs, read once from a Config into a plain struct.
#pragma once

#include <cstdint>

#include "layouts/base/target.h"
#include "ops/conv/workload.h"
#include "templates/base/conv_template.h"
#include "templates/depthwise/config.h"
#include "templates/depthwise/schedule.h"
#include "templates/direct/config.h"
#include "templates/direct/schedule.h"

namespace tilesmith {
namespace depthwise_pair {

enum class PairKind {
  kNone,            // neither
  kDepthwiseFirst,  // depthwise, then 1x1
  kPointwiseFirst,  // 1x1, then depthwise
};
PairKind KindOf(const ConvWorkload& workload);

// The two convs, each on its own.
struct PairConvs {
  ConvWorkload depthwise, pointwise;
};
// Precondition: a pair.
PairConvs ConvsOf(const ConvWorkload& workload);

struct DepthwisePairConfig {
  int64_t ic_block = 16;                 // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 16;                 // x of the output's; 0 is NHWC
  int64_t rows = 1;                      // output rows of the depthwise conv per task ...
  int64_t parts = 1;                     // ... for one of this many parts of the 1x1 conv's output channels
  int64_t mid_rows = 1;                  // 1x1 first: rows of the middle tensor computed by one call
  depthwise::DepthwiseConfig depthwise;  // its rows are `rows`
  direct::DirectConfig pointwise;
};

DepthwisePairConfig ReadConfig(const ConvWorkload& workload, const Target& cpu, const Config& config);

struct RowRange {
  int64_t first = 0, last = 0;  // [first, last)
  int64_t size() const { return last - first; }
};

// A fused pair as numbers: the scratch that holds a tile of the middle tensor, and the tasks.
//
// The scratch is NCHW[vector]c: for each vector of middle channels of the task, rows of pixels.
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

// Precondition: cpu.isa has generated code and the machine has it.
std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights);

Schedule MakeSchedule(const ConvWorkload& workload, const DepthwisePairConfig& config, const Target& cpu);

}  // namespace depthwise_pair

const ConvTemplate& DepthwisePairTemplate();
}  // namespace tilesmith
