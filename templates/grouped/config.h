// The grouped template's knobs, read once from a Config into a plain struct.
#pragma once

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"
#include "templates/base/type_knobs.h"

namespace tilesmith::grouped {

// What stays in registers while the taps of an input row and channel are multiplied.
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

Support Supports(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Space(const ConvWorkload& workload, const Target& cpu);
// A config without tuning: the widest tile that fits the registers, vector-width blocks.
Config Default(const ConvWorkload& workload, const Target& cpu);

// The same of grouped_bf16, whose input, output or both are stored in bf16: groups of less than a vector and,
// with pairs, of whole ones.
Support SupportsBf16(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Bf16Space(const ConvWorkload& workload, const Target& cpu);
Config Bf16Default(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith::grouped
