// The portable template: plain C++ built once per instruction set. Supports every workload with
// nothing fused in front of the conv on every CPU, in any pair of layouts; the fallback where no generated
// kernel applies.
//
// The portable template's knobs, read once from a Config into a plain struct.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"

namespace tilesmith {
namespace portable {

struct PortableConfig {
  int64_t ic_block = 16;    // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 16;    // x of the output's; 0 is NHWC
  bool over_width = false;  // vectors over width, which suits groups of few channels; else over channels
  int64_t ow_tile = 1;      // over channels: positions of a tile
  int64_t rows = 1;         // output rows per task
};

PortableConfig ReadConfig(const Config& config);

// The portable template's workload and config, with what its estimates need.
struct Schedule {
  ConvWorkload workload;
  PortableConfig config;
  Layout in, out;
  int vector_floats = 4;
};

Schedule MakeSchedule(const ConvWorkload& workload, const PortableConfig& config, int vector_floats);

// A task is some rows of a group or, with vectors over channels, of a chunk of channels.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);
std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights);

// Output channels that vectors over channels compute together.
struct Chunk {
  int64_t first = 0;  // output channel
  int64_t count = 0;  // real channels
  int lanes = 0;
};
std::vector<Chunk> ChunksOf(const Schedule& schedule);
// Whether vectors over channels hold the channels of a depthwise conv, whose blocks are equal and vectors.
bool IsDepthwise(const ConvWorkload& workload, int64_t in_block, int64_t out_block);
// Scratch of one thread that works over width.
int64_t PlaneScratchFloats(const ConvWorkload& workload, int64_t rows);

}  // namespace portable

const ConvTemplate& PortableTemplate();
}  // namespace tilesmith
