// The grouped Winograd template's knobs, read once from a Config into a plain struct.
#pragma once

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"

namespace tilesmith::grouped_winograd {

struct GroupedWinogradConfig {
  int64_t ic_block = 16;    // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 16;    // x of the output's; 0 is NHWC
  int64_t tile = 4;         // outputs of a tile along each axis
  int64_t tile_block = 14;  // tiles per task
  int64_t width_tile = 14;  // register tile of the products: tiles ...
  int64_t sums = 1;         // ... by accumulators of each; see templates/grouped/lane_swaps.h
};

// Registers of the products beside accumulators and weights: an index of a permute, inputs in turn.
constexpr int kInputRegisters = 2;
constexpr int kBesideSums = 1 + kInputRegisters;

GroupedWinogradConfig ReadConfig(const Config& config);

Support Supports(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Space(const ConvWorkload& workload, const Target& cpu);
// A config without tuning.
Config Default(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith::grouped_winograd
