// The few_outputs template's loop nest as numbers. Pure arithmetic, shared by the config space, the
// generator, the weight packing and the run loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "layouts/base/split.h"
#include "ops/conv/workload.h"
#include "templates/base/image_strides.h"
#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"
#include "templates/base/row_tiles.h"
#include "templates/few_outputs/config.h"

namespace tilesmith::few_outputs {

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

}  // namespace tilesmith::few_outputs
