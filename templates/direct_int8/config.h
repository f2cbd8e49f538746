// Convolution of bytes, dense, grouped and depthwise, in any pair of layouts and on any CPU.
//
// A task is a block of output channels in a tile of output pixels of an image. The part of the input that the
// tile sees is widened to 16 bits in the thread's scratch, or with VNNI copied, padding included: pixels one
// after the other, the group's channels adjacent. A window is then a few runs of adjacent numbers, and words
// of those, two or four of them, are multiplied at a time. Where tasks of one tile follow each other, a
// thread widens a tile once. Small groups are computed together as one.
//
// In a depthwise convolution the group is a block of channels, and each number lies beside its neighbour in
// the window; with VNNI it has a kernel of its own (depthwise_kernel.h). With VNNI the lanes of few outputs
// are numbers of the window, and each lane of small groups reads its own group's numbers.
#pragma once

#include <memory>

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"
#include "templates/base/window_plan.h"

namespace tilesmith {

const ConvTemplate& DirectInt8Template();

namespace direct_int8 {

// A workload and the values of the knobs, as the kernel computes them.
struct Schedule {
  ConvWorkload workload;
  Layout in, out;
  WindowPlan plan;
  // The kernel is that of depthwise_kernel.h, and of the plan only the cut counts.
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

// A task is a block of output channels in a tile of pixels of an image.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);
// Precondition: weights.quantized, an op of the schedule's workload.
std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu,
                                        const ConvWeights& weights);

}  // namespace direct_int8
}  // namespace tilesmith
