// How long a layout transform takes on this machine: the number the graph tuner charges.
#pragma once

#include "layouts/base/target.h"
#include "layouts/layout.h"

namespace tilesmith {

struct TransformTiming {
  double seconds = 0;       // low quantile of the samples, source tensor warm in cache as after its producer
  double copy_seconds = 0;  // memcpy of the same bytes by the same threads, for comparison
};

// Times the very kernel MakeTransformKernel returns, on `threads` threads. Must not run while anything else
// measures. Zero seconds when SameMemory(shape, from, to).
TransformTiming MeasureTransform(const Shape& shape, const Layout& from, const Layout& to, const Target& cpu,
                                 int threads);

}  // namespace tilesmith
