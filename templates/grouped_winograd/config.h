// Winograd convolution, F(2 x 2), F(4 x 4) and F(6 x 6), for groups of 2 to 16 channels: 3x3, stride 1 or 2.
// The transforms are those of the Winograd template; the products are made in place, a vector of several
// groups at a time, so that all of a block of tiles stays in the first-level cache. Source: original.
//
// The grouped Winograd template's knobs, read once from a Config into a plain struct.
#pragma once

#include <memory>

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"
#include "templates/winograd/schedule.h"

namespace tilesmith {
namespace grouped_winograd {

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

// The grouped Winograd template's numbers: the Winograd template's, its products merged, with scratch for one
// vector of channels that holds V, then M:
//     [place of xi][tile of the block][lane]
struct Schedule : winograd::Schedule {
  GroupedWinogradConfig grouped;
};

Schedule MakeSchedule(const ConvWorkload& workload, const GroupedWinogradConfig& config, int vector_floats);

// A task is one block of tiles of one vector of channels.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);

// Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it.
std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights);

}  // namespace grouped_winograd

// Name "grouped_winograd".
const ConvTemplate& GroupedWinogradTemplate();
}  // namespace tilesmith
