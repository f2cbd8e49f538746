// The winograd_int8 template's workload and config as the kernel computes them.
#pragma once

#include <memory>

#include "templates/winograd_int8/config.h"

namespace tilesmith::winograd_int8 {

struct Schedule {
  ConvWorkload workload;
  Layout in, out;
  QuantizedWinogradPlan plan;
};

Schedule MakeSchedule(const ConvWorkload& workload, const WinogradInt8Config& config, const Target& cpu);

// A task is a block of output channels in a part of an image.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);
// Precondition: weights.quantized, an op of the schedule's workload.
std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu,
                                        const ConvWeights& weights);

}  // namespace tilesmith::winograd_int8
