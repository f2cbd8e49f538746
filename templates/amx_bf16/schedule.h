// The amx_bf16 template's workload and config as the kernel computes them.
#pragma once

#include <memory>

#include "templates/amx_bf16/config.h"

namespace tilesmith::amx_bf16 {

struct Schedule {
  ConvWorkload workload;
  AmxConfig config;
  Layout in, out;  // as stored
  WindowPlan plan;

  // Whether windows are read where they lie, without a copy.
  bool as_it_is() const;
  // Tiles of positions that a task multiplies with each tile of weights.
  int64_t position_tiles() const;
  // Instructions that multiply tiles, of one position tile and 16 output channels.
  int64_t steps() const;
};

Schedule MakeSchedule(const ConvWorkload& workload, const AmxConfig& config, const Target& cpu);

// A task is a block of 32 output channels in a tile of pixels of an image.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);
// As in ConvTemplate.
double CyclesOf(const Schedule& schedule, const Target& cpu);
// Precondition: cpu.amx.
std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights);

}  // namespace tilesmith::amx_bf16
