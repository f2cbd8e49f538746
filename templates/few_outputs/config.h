// Convolution to few output channels, 1 to 8, such as the ends of segmentation and super-resolution networks:
// reads and writes NCHW, vectorised over the width of a row, since vectors of output channels would be mostly
// empty. Any kernel, padding, dilation and vertical stride; horizontal stride 1. Source: original.
//
// The few_outputs template's knobs, read once from a Config into a plain struct.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "layouts/base/split.h"
#include "layouts/base/target.h"
#include "ops/conv/workload.h"
#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"
#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"
#include "templates/base/row_tiles.h"

namespace tilesmith {
namespace few_outputs {

// Into which cache each tile fetches the input rows that the one below it will read and it does not. A few
// rows of every plane are too many streams for the hardware to follow.
enum class Prefetch { kNone = 0, kSecondLevel = 1, kFirstLevel = 2 };

struct FewOutputsConfig {
  int64_t lanes = 16;          // positions of a vector
  int64_t outputs = 1;         // register tile: output channels ...
  int64_t vectors = 4;         // ... by vectors of a row ...
  int64_t tile_rows = 1;       // ... by rows
  bool balance_tiles = false;  // tiles of equal width instead of full ones and a rest
  int64_t ic_unroll = 1;
  int64_t row_tiles = 1;  // tiles of tile_rows rows per task
  Prefetch prefetch = Prefetch::kNone;
  int64_t flat_width = 0;  // 1x1 only: pixels of an image treated as rows of this width; 0 keeps the rows
};

FewOutputsConfig ReadConfig(const Config& config);

// The few_outputs template's loop nest as numbers. Pure arithmetic, shared by the config space, the
// generator, the weight packing and the run loop.
struct Schedule {
  ConvWorkload workload;   // recut into rows of flat_width
  int64_t image_rows = 0;  // output rows of the workload as it was before
  FewOutputsConfig config;
  std::vector<TileRun> tiles;  // in vectors; an edge tile has lanes outside the input row or the output row
  int64_t in_row_bytes = 0, in_plane_bytes = 0;
  int64_t out_row_bytes = 0, out_plane_bytes = 0;

  int64_t chunks() const { return (workload.oc + config.outputs - 1) / config.outputs; }
  int64_t last_outputs() const { return workload.oc % config.outputs; }  // of the last chunk; 0: it is whole
  int64_t last_rows() const { return workload.oh % config.tile_rows; }   // of the last tile; 0: it is whole
  int64_t rows_per_task() const { return config.tile_rows * config.row_tiles; }
  int64_t row_blocks() const { return (workload.oh + rows_per_task() - 1) / rows_per_task(); }
  // Lanes of a row's vector `vector` that are real: all but in the last one.
  int64_t RealLanes(int64_t vector) const {
    return std::min(config.lanes, workload.ow - vector * config.lanes);
  }
  // Which lanes of the input of output vector `vector` at kernel column `column` are inside the input row,
  // and wanted: one bit a lane.
  uint32_t InputLanes(int64_t vector, int64_t column) const;
  // Packed weights of a chunk of `outputs` channels: for input channel, kernel row, kernel column, output.
  int64_t WeightBytes(int64_t outputs, int64_t kernel_row, int64_t column) const {
    return (kernel_row * workload.kw + column) * outputs * kFloatBytes;
  }
};

// Precondition: FewOutputsTemplate supports the workload.
Schedule MakeSchedule(const ConvWorkload& workload, const FewOutputsConfig& config);

// A task computes some tiles of rows of one chunk of output channels of one image. Chunks of one row block
// share their input: neighbours.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);

// Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it.
std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights);

// Machine code of one kernel for whole tiles, within some 20%.
int64_t EstimateCodeBytes(const Schedule& schedule);

// Which vector register holds what in the few_outputs kernel. A plan that needs more registers than the CPU
// has makes the config invalid before a byte is emitted.
//
//   [0, accumulators)          output tile, vector v of row r of output o at (o * rows + r) * vectors + v
//   [first_input, + inputs)    vectors of an input row, used in turn
//   [first_weight, + weights)  the weights of one input row and kernel column, one in all lanes of each
//   mask                       AVX2's, of a vector that is not full
// Before and after the taps [first_input, mask) is scratch.
struct RegisterPlan {
  int accumulators = 0;
  int first_input = 0, inputs = 0;
  int first_weight = 0, weights = 0;
  int mask = 0;
  bool fits = false;
};

struct TileSize {
  int64_t outputs, rows, vectors;
};

// Scratch registers that the epilogue needs beside the accumulators.
constexpr int kEpilogueScratch = 2;

inline RegisterPlan PlanRegisters(const Schedule& g, const TileSize& tile) {
  constexpr int kMaxInputs = 6;  // more loads in flight than any CPU can use
  const bool wide = g.config.lanes == 16;
  RegisterPlan plan;
  size_t most_taps = 0;
  for (const InputRow& row : InputRowsOf(g.workload, tile.rows))
    most_taps = std::max(most_taps, row.taps.size());
  plan.accumulators = static_cast<int>(tile.outputs * tile.rows * tile.vectors);
  plan.weights = static_cast<int>(most_taps * tile.outputs);
  plan.mask = wide ? 32 : 15;
  plan.first_weight = plan.mask - plan.weights;
  plan.first_input = plan.accumulators;
  plan.inputs = std::min(plan.first_weight - plan.first_input, kMaxInputs);
  plan.fits = plan.inputs >= 1 && plan.accumulators + kEpilogueScratch <= plan.mask;
  return plan;
}

}  // namespace few_outputs

const ConvTemplate& FewOutputsTemplate();
}  // namespace tilesmith
