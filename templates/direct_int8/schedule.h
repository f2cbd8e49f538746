// The direct_int8 template's workload and config as the kernel computes them.
#pragma once

#include <memory>

#include "templates/direct_int8/config.h"

namespace tilesmith::direct_int8 {

struct Schedule {
  ConvWorkload workload;
  Layout in, out;
  Target cpu;
  WindowPlan plan;
  // By the kernel of quantized_depthwise_kernel.h; of the plan only the cut counts.
  bool depthwise_by_vnni = false;

  // Output channels that are computed together, and how many numbers one vector holds.
  int64_t lanes() const;
  // Rows and columns of a task's tile; both of a single row where 1x1 recuts the image.
  const ConvWorkload& conv() const { return depthwise_by_vnni ? workload : plan.conv; }
  int64_t groups() const;  // of channels whose tasks read the same input
  int64_t blocks() const;  // of each
  // Input channels that are multiplied for an output: of groups computed together where lanes do not have
  // their own group's alone.
  int64_t inputs() const {
    return plan.group_words > 0 ? plan.group_words * plan.word : conv().ic / conv().g;
  }
  int64_t terms() const { return inputs() * conv().kh * conv().kw; }
};

Schedule MakeSchedule(const ConvWorkload& workload, const DirectInt8Config& config, const Target& cpu);

// A task is a block of output channels in a tile of pixels of an image.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);
// Precondition: weights.quantized, an op of the schedule's workload.
std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu,
                                        const ConvWeights& weights);

}  // namespace tilesmith::direct_int8
