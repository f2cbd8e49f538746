// The inner loop of GridSample's kernel, one build per instruction set.
#pragma once

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

// How an image is sampled between its pixels and outside.

enum class SampleMode { kLinear, kNearest, kCubic };
enum class SamplePadding { kZeros, kBorder, kReflection };

// Places of one image, all of its channels.
struct GridSampleRun {
  const float* image;  // {channels, height, width}
  const float* grid;   // {places, 2}
  float* out;          // of the first channel
  int64_t channels, height, width;
  int64_t places;
  int64_t out_plane;  // floats from one channel's output to the next
  SamplePadding padding;
  bool align_corners;
};

// Linear, as the reference computes it: in double, with the taps in its order.
TILESMITH_DECLARE_ISA(void GridSampleLinear(const GridSampleRun& run))

}  // namespace tilesmith
