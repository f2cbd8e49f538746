// Grouped convolution with few channels a group: 2 to 32, as many in as out. A vector of output channels
// holds several whole groups, or a part of one; the input element that each lane needs is spread inside its
// group's lanes by a permute, or by a plain broadcast when a group fills vectors. Any kernel, stride, padding
// and dilation. Source: original.
//
// The grouped template's knobs, read once from a Config into a plain struct.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "layouts/base/split.h"
#include "layouts/base/target.h"
#include "layouts/layout.h"
#include "ops/conv/workload.h"
#include "templates/base/config.h"
#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"
#include "templates/base/loop_features.h"
#include "templates/base/loop_nest.h"
#include "templates/base/row_tiles.h"

namespace tilesmith {
namespace grouped {

// Hold says what stays in registers while the taps of an input row and channel are multiplied.
enum class Hold {
  kNothing = 0,  // weights are memory operands of the FMAs
  kWeights = 1,  // inputs pass by one at a time
  kInputs = 2,   // weights pass by one at a time
};

struct GroupedConfig {
  int64_t ic_block = 16;  // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 16;  // x of the output's; 0 is NHWC
  int64_t lanes = 16;     // of a vector: 8 also on AVX-512, where an input element is then often a plain load
  int64_t width_tile = 8;      // register tile: output positions of a row ...
  int64_t tile_rows = 1;       // ... by output rows
  bool balance_tiles = false;  // tiles of equal width instead of full ones and a rest
  int64_t sums = 1;            // accumulators of an output vector; see lane_swaps.h
  Hold hold = Hold::kWeights;
  int64_t row_tiles = 1;   // tiles of tile_rows rows per task
  bool oc_inner = false;   // tasks: consecutive ones share the rows instead of the channels
  int64_t flat_width = 0;  // 1x1 only: pixels of an image treated as rows of this width; 0 keeps the rows
  StoredTypes types;
  bool pairs = false;  // two input channels in bf16 are multiplied at a time (VDPBF16PS); otherwise floats
};

// Configs of grouped_bf16 have the knobs in_type and out_type, and multiply pairs where the input is stored
// in bf16 and the CPU has an instruction for it; others have none of them.
GroupedConfig ReadConfig(const Config& config, const Target& cpu);

// How the lanes of a vector get the input element of their group.
enum class Spread {
  kPairs,      // 2 channels a group: a permute with an immediate
  kQuads,      // 4 channels a group: the same
  kIndex,      // 8 channels in a vector of 16, and pairs in bf16: a permute by an index register
  kBroadcast,  // groups of whole vectors
  kSwaps,      // several sums: not at all, see lane_swaps.h
};

constexpr int64_t kPairChannels = 2;

// The grouped template's loop nest as numbers. Pure arithmetic, shared by the config space, the
// generator, the weight packing and the run loop.
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
  // Blocks that the input channels of a group lie in.
  int64_t GroupBlocks() const { return spread == Spread::kBroadcast ? CeilDiv(channels, in.block) : 1; }
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

// Which vector register holds what in the grouped kernel. A plan that needs more registers than the CPU has
// makes the config invalid before a byte is emitted.
//
//   [0, accumulators)          output tile, position w of row r of sum t at (t * rows + r) * positions + w
//   [first_input, + inputs)    input elements, spread over their groups' lanes: those of one input row, or
//                              used in turn
//   [first_weight, + weights)  weights of one input row and spread, or used in turn
//   index                      of the permute, when there is one
//   mask                       AVX2's mask of a last vector that is not full, when NHWC needs one
// Before and after the taps [first_input, mask) is scratch.
struct RegisterPlan {
  int accumulators = 0;
  int first_input = 0, inputs = 0;
  int first_weight = 0, weights = 0;
  int index = 0;
  int mask = 0;
  bool fits = false;
};

// Scratch registers that the epilogue needs beside the accumulators.
constexpr int kEpilogueScratch = 2;

// `positions` of a row, `rows` of them.
inline RegisterPlan PlanRegisters(const Schedule& g, int positions, int64_t rows) {
  constexpr int kMaxInTurn = 6;             // more loads in flight than any CPU can use
  const bool wide = g.vector_floats == 16;  // AVX-512, which has mask registers of its own
  const int registers = wide ? 32 : 16;
  RegisterPlan plan;
  const bool masked = !wide && g.partial_lanes > 0 && (g.in_layout.is_nhwc() || g.out_layout.is_nhwc());
  plan.mask = registers - (masked ? 1 : 0);
  plan.index = plan.mask - (g.spread == Spread::kIndex ? 1 : 0);
  plan.accumulators = static_cast<int>(rows * positions * g.config.sums);
  plan.first_input = plan.accumulators;
  if (g.config.hold == Hold::kInputs) {
    plan.inputs = static_cast<int>(InputColumnsOf(g.workload, {.width = positions}).size());
    plan.weights = std::min(plan.index - plan.first_input - plan.inputs, kMaxInTurn);
  } else {
    size_t most_taps = 0;
    for (const InputRow& row : InputRowsOf(g.workload, rows))
      most_taps = std::max(most_taps, row.taps.size());
    const auto weights = static_cast<int>(most_taps * g.workload.kw * g.config.sums);
    plan.weights = g.config.hold == Hold::kWeights ? weights : 0;
    plan.inputs = std::min(plan.index - plan.weights - plan.first_input, kMaxInTurn);
  }
  plan.first_weight = plan.index - plan.weights;
  plan.fits = plan.inputs >= 1 && (plan.weights >= 1 || g.config.hold == Hold::kNothing) &&
              plan.accumulators + kEpilogueScratch <= plan.mask;
  return plan;
}

}  // namespace grouped

const ConvTemplate& GroupedTemplate();
// grouped_bf16 stores the input, the output or both in bf16; its arithmetic is in f32.
const ConvTemplate& GroupedBf16Template();
}  // namespace tilesmith
