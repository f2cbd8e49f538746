// A whole depthwise conv as numbers: the planes of its tensors and the rows of its tasks.
#pragma once

#include <cstdint>
#include <vector>

#include "layouts/base/split.h"
#include "layouts/layout.h"
#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"
#include "templates/depthwise/row_geometry.h"

namespace tilesmith::depthwise {

// Where the vectors of channels of an image lie.
struct ChannelStrides {
  int64_t vectors_per_block = 1;  // this many lie next to each other in every pixel
  int64_t vector_bytes = 0;       // as stored
  int64_t block_bytes = 0;
};

struct Schedule {
  RowGeometry rows;
  std::vector<RowCode> codes;  // all that the tasks need

  int64_t vectors = 0;          // of channels; the last may not be full
  int lanes = 0;                // real ones of the last vector if the others need care, else 0
  int64_t padding_vectors = 0;  // after the last, to fill the last block
  ChannelStrides in, out;

  int64_t row_blocks() const { return (rows.workload.oh + rows.config.rows - 1) / rows.config.rows; }
  int64_t vector_blocks() const { return (vectors + rows.config.vectors - 1) / rows.config.vectors; }
  // Output rows of row block `block`, in groups.
  std::vector<RowGroup> Groups(int64_t block) const;
};

// A task computes the rows of one row block for `vectors` vectors of channels of one image. Tasks are in the
// order of the output's memory, so that a thread's share is memory side by side.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);

// Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it.
std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights);
// Its part, for templates that run planes: the loops over `vectors` vectors of channels of one row block.
LoopPart PlaneLoops(const Schedule& schedule, int64_t vectors);

// In and out in the layout of config.block and the types of config.types.
Schedule MakeSchedule(const ConvWorkload& workload, const DepthwiseConfig& config, const Target& cpu);

// Changes `schedule` to read (write) floats in a scratch NCHW[vector]c with `rows` rows per plane instead of
// a tensor.
void ReadScratch(Schedule& schedule, int64_t rows);
void WriteScratch(Schedule& schedule, int64_t rows);

}  // namespace tilesmith::depthwise
