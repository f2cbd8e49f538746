// The portable template's workload and config, with what its estimates need.
#pragma once

#include <memory>
#include <vector>

#include "templates/portable/config.h"

namespace tilesmith::portable {

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

}  // namespace tilesmith::portable
