// A whole depthwise conv as numbers: the planes of its tensors and the rows of its tasks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layouts/base/split.h"
#include "layouts/base/target.h"
#include "layouts/layout.h"
#include "ops/conv/workload.h"
#include "templates/base/image_strides.h"
#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"
#include "templates/base/row_tiles.h"
#include "templates/depthwise/config.h"

namespace tilesmith::depthwise {

// The depthwise template's loop nest as numbers: how output rows become groups that one piece of code
// computes, and rows become register tiles. Pure arithmetic, shared by the generator, the code-size estimate
// and the run loop.
//
// A plane is one vector of channels of one image: rows of pixels, `pixel_bytes` and `row_bytes` apart.
struct RowGeometry {
  ConvWorkload workload;  // one with g == ic == oc; its channel counts are not looked at
  DepthwiseConfig config;
  int vector_floats = 16;
  int registers = 32;
  bool masked = false;  // the last vector of channels is not full and must be read and written masked
  int64_t in_pixel_bytes = 0, in_row_bytes = 0;
  int64_t out_pixel_bytes = 0, out_row_bytes = 0;

  int64_t vector_bytes() const { return vector_floats * kFloatBytes; }  // of floats, as weights are
  int64_t taps() const { return workload.kh * workload.kw; }
  // Whether an input pixel holds vectors of several planes: they share cache lines, and so are computed tile
  // by tile.
  bool planes_in_tiles() const { return in_pixel_bytes > vector_floats * ElementBytes(config.types.in); }
  // Input row of kernel row 0 for output row `row`; negative within the padding.
  int64_t InputRow(int64_t row) const { return row * workload.sh - workload.ph; }
};

// Kernel rows [first, last).
struct KernelRows {
  int64_t first = 0, last = 0;
  bool operator==(const KernelRows&) const = default;
};
// The kernel rows that read inside the input for output row `row`.
KernelRows ValidKernelRows(const ConvWorkload& workload, int64_t row);

enum class CodeKind {
  kUnrolled,  // every kernel row of every output row
  kLooped,    // a loop over a range of kernel rows, given at run time, that all its output rows share
  kPair,      // two output rows as in row_pairs.h
};

// A piece of code: consecutive output rows, computed in tiles of all of them.
struct RowCode {
  CodeKind kind = CodeKind::kUnrolled;
  int64_t rows = 0;  // output rows
  // kUnrolled: the kernel rows of each output row. kPair: one range, of the input rows that exist, counted
  // from the first that the first output row reads. kLooped: none.
  std::vector<KernelRows> valid;
  bool operator==(const RowCode&) const = default;
};

// Output rows [row, row + code.rows), and the kernel rows for looped code.
struct RowGroup {
  int64_t row = 0;
  RowCode code;
  KernelRows range;
};

// Cuts output rows [first, last) into groups.
std::vector<RowGroup> CutRows(const RowGeometry& geometry, int64_t first, int64_t last);

// Adds to `codes` those of the groups that it lacks.
void CollectCodes(const std::vector<RowGroup>& groups, std::vector<RowCode>& codes);

// The register tiles of a row: wider ones where the code has fewer rows than the knob says.
std::vector<TileRun> CutColumns(const RowGeometry& geometry, const RowCode& code);

// Machine code of `codes` together, in bytes, within some 20%.
int64_t EstimateCodeBytes(const RowGeometry& geometry, const std::vector<RowCode>& codes);

// Which vector register holds what.
//   [0, accumulators)         output tile, position w of row r at r * width + w
//                             (of a pair: row 0 the sum kBoth, then kUpper; row 1 kOpposed, then kLower)
//   [first_temp, + temps)     input pixels; after the taps, scratch
//   [first_weight, + weights) of the kernel row, or of the pass of a pair
//   [first_held, + held)      weights that stay for a whole plane, in the same place for all its code
//   mask                      AVX2: the lanes of the last vector of channels
struct RegisterPlan {
  int accumulators = 0;
  int first_temp = 0, temps = 0;
  int first_weight = 0, weights = 0;
  int first_held = 0, held = 0;
  int mask = 0;
  Weights mode = Weights::kMemory;  // what the knob says, but what is held for pairs serves only pairs
  bool fits = false;
};
RegisterPlan PlanRegisters(const RowGeometry& geometry, const RowCode& code, int64_t width);

// Why the register tile or its code cannot be emitted; "" if it can.
std::string WhyNotEmitted(const RowGeometry& geometry, const std::vector<RowCode>& codes);

// Vectors of weights of one plane: the kernel's, then those of the pairs' products (product, kernel column).
int64_t PairWeights(const RowGeometry& geometry);  // 0 without pairs
inline int64_t PlaneWeights(const RowGeometry& geometry) { return geometry.taps() + PairWeights(geometry); }

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

// Precondition: cpu.isa has generated code and the machine has it.
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
