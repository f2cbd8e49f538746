// The few_outputs template's knobs and loop nest as numbers. Pure arithmetic, shared by the config space, the
// generator, the weight packing and the run loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/workload.h"
#include "templates/config.h"
#include "templates/loop_features.h"
#include "templates/loop_nest.h"
#include "templates/row_tiles.h"

namespace tilesmith::few_outputs {

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

struct Geometry {
  ConvWorkload workload;  // recut into rows of flat_width
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
    return (kernel_row * workload.kw + column) * outputs * static_cast<int64_t>(sizeof(float));
  }
};

// Precondition: FewOutputsTemplate supports the workload.
Geometry MakeGeometry(const ConvWorkload& workload, const FewOutputsConfig& config);

LoopFeatures FeaturesOf(const Geometry& geometry);
LoopNest NestOf(const Geometry& geometry);

// Machine code of one kernel for whole tiles, within some 20%.
int64_t EstimateCodeBytes(const Geometry& geometry);

}  // namespace tilesmith::few_outputs
