// The direct template's loop nest as numbers: how a workload and a config become rows, tiles, passes and
// chunks. Pure arithmetic, shared by the generator, the weight packing, the code-size estimate and the run
// loop.
#pragma once

#include <cstdint>
#include <vector>

#include "layouts/base/split.h"
#include "layouts/layout.h"
#include "ops/conv/workload.h"
#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"
#include "templates/base/row_tiles.h"
#include "templates/direct/config.h"

namespace tilesmith::direct {

// Input channels accumulated together: `blocks` blocks of `block_channels`, then `tail_channels` of one more.
struct Pass {
  int64_t first_channel = 0;  // within the group
  int64_t blocks = 0;
  int64_t block_channels = 0;
  int64_t tail_channels = 0;
  bool operator==(const Pass&) const = default;
  int64_t channels() const { return blocks * block_channels + tail_channels; }
};

// Output channels computed together: `vectors` of them real, followed by `zero_vectors` of block padding.
struct Chunk {
  int64_t group = 0;
  int64_t first_channel = 0;  // within the whole output
  int vectors = 0;
  int zero_vectors = 0;
  int partial_lanes = 0;  // real lanes of the last vector when it is not full, else 0
};

struct Schedule {
  ConvWorkload workload;
  DirectConfig config;
  Layout in, out;  // as stored
  int vector_floats = 16;

  // Rows and columns after flattening.
  int64_t ih, iw, oh, ow;
  // Bytes, those of the input as it is multiplied: prepared inputs are of another type than stored ones.
  int64_t in_pixel_bytes, in_row_bytes, in_block_bytes;
  int64_t out_pixel_bytes, out_row_bytes, out_block_bytes;

  std::vector<TileRun> tiles;
  std::vector<Pass> passes;
  std::vector<Chunk> chunks;

  // Whether tasks make what they multiply of the input's rows first.
  bool prepares() const;
  int64_t row_blocks() const { return (oh + config.rows - 1) / config.rows; }
  // Byte offset of output channel `channel` from pixel 0 of the image.
  int64_t OutChannelOffset(int64_t channel) const;
  // Kernel rows [first, last) that read inside the input for output row `row`.
  void KernelRows(int64_t row, int64_t* first, int64_t* last) const;
};

Schedule MakeSchedule(const ConvWorkload& workload, const DirectConfig& config, int vector_floats);

// Whether there are input ops, or the input is stored in another type than is multiplied.
bool Prepares(const ConvWorkload& workload, const DirectConfig& config);
// Then: input rows that a task reads at most, and the bytes of them in the order of the input's layout.
int64_t InputRowsOfTask(const ConvWorkload& workload, const DirectConfig& config);
int64_t PreparedBytes(const ConvWorkload& workload, const DirectConfig& config);

// Cycles that a core needs for one row of outputs, all of their channels, when its inputs are near: an
// estimate to choose register tiles by.
double RowCycles(const ConvWorkload& workload, const DirectConfig& config, int vector_floats);
// As in ConvTemplate, given RowCycles.
double BusiestCoreCycles(const ConvWorkload& workload, const DirectConfig& config, double row_cycles,
                         const Target& cpu);
double CyclesOf(const Schedule& schedule, const Target& cpu);

// A task computes `rows` output rows of one chunk of one image, all passes.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);

LoopNest NestOf(const Schedule& schedule);

// Precondition: cpu.isa has generated code and the machine has it.
std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights);
// Its parts, for templates that run rows of this one: the loop over passes, those of one row of a pass, whose
// positions are called `pixels`, what they do, and the tile's bytes.
Loop PassLoop(const Schedule& schedule);
std::vector<Loop> RowLoops(const Schedule& schedule, std::string_view pixels);
std::string RowBody(const Schedule& schedule);
void SetTileBytes(const Schedule& schedule, LoopNest& nest);

// Machine code of the largest kernel variant, in bytes, within some 20%.
int64_t EstimateCodeBytes(const ConvWorkload& workload, const DirectConfig& config, int vector_floats);

}  // namespace tilesmith::direct
