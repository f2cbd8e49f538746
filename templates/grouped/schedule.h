// The grouped template's loop nest as numbers. Pure arithmetic, shared by the config space, the
// generator, the weight packing and the run loop.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "layouts/base/split.h"
#include "layouts/layout.h"
#include "ops/conv/workload.h"
#include "templates/base/image_strides.h"
#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"
#include "templates/base/row_tiles.h"
#include "templates/grouped/config.h"

namespace tilesmith::grouped {

// How the lanes of a vector get the input element of their group.
enum class Spread {
  kPairs,      // 2 channels a group: a permute with an immediate
  kQuads,      // 4 channels a group: the same
  kIndex,      // 8 channels in a vector of 16, and pairs in bf16: a permute by an index register
  kBroadcast,  // groups of whole vectors
  kSwaps,      // several sums: not at all, see lane_swaps.h
};

constexpr int64_t kPairChannels = 2;

struct Schedule {
  ConvWorkload workload;   // recut into rows of flat_width
  int64_t image_rows = 0;  // output rows of the workload as it was before
  GroupedConfig config;
  int vector_floats = 16;  // config.lanes
  int64_t channels = 0;    // per group, in and out
  Spread spread = Spread::kBroadcast;
  Layout in_layout, out_layout;
  ImageStrides in, out;
  std::vector<TileRun> tiles;
  int64_t vectors = 0;       // of real output channels
  int64_t zero_vectors = 0;  // of nothing but block padding
  int partial_lanes = 0;     // real lanes of the last real vector when it is not full, else 0

  // Output rows of a tile that is cut off by the bottom; 0 when all are whole.
  int64_t last_rows() const { return workload.oh % config.tile_rows; }
  // Input channels that are multiplied at a time, and how many of these a group has.
  int64_t step_channels() const { return config.pairs ? kPairChannels : 1; }
  int64_t terms() const { return channels / step_channels(); }
  // Vectors made of one input vector: each of its terms spread, or its lanes swapped.
  int64_t spreads() const { return terms() / config.sums; }
  int64_t rows_per_task() const { return config.tile_rows * config.row_tiles; }
  int64_t row_blocks() const { return (workload.oh + rows_per_task() - 1) / rows_per_task(); }
  // Packed weights of one output vector, in lanes of a float or a pair: for kernel row, term, kernel column:
  // one vector.
  int64_t WeightOffset(int64_t kernel_row, int64_t term, int64_t column) const {
    return ((kernel_row * terms() + term) * workload.kw + column) * vector_floats;
  }
  int64_t weights_per_vector() const { return WeightOffset(workload.kh, 0, 0); }
  // First input channel that output vector `vector` reads.
  int64_t FirstInput(int64_t vector) const;
};

// Precondition: GroupedTemplate supports the workload.
Schedule MakeSchedule(const ConvWorkload& workload, const GroupedConfig& config);

// Input columns, relative to the tile's first position's first tap, and the positions that use them.
struct InputColumn {
  struct Tap {
    int position;
    int kernel_column;
  };
  int64_t offset = 0;
  std::vector<Tap> taps;
};
// Only columns inside the input row.
std::vector<InputColumn> InputColumnsOf(const ConvWorkload& workload, const TileRun& tile);

// A task computes some tiles of rows of one output vector of one image.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);

// Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it.
std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights);

// Machine code of one kernel for tiles of config.tile_rows rows, within some 20%.
int64_t EstimateCodeBytes(const Schedule& schedule);

}  // namespace tilesmith::grouped
