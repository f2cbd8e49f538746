// The kernel of quantised depthwise convolution on CPUs with AVX-512 VNNI, in any layout.
//
// A task is a block of 64 channels of some output rows of an image. The rows that they see are copied to the
// thread's scratch, padding included, in blocks; windows are multiplied from there.
#pragma once

#include "templates/direct_int8/config.h"

namespace tilesmith::direct_int8 {

// Whether it computes the conv on this CPU: of bytes, each group a channel, nothing added, rows of reasonable
// size, weights that are bytes with a sign.
bool DepthwiseFits(const ConvWorkload& workload, const Target& cpu);
// Output rows of a task. Precondition: it fits.
int64_t DepthwiseRows(const ConvWorkload& workload, int64_t cores);
// Where the tasks lie that compute so many rows each.
TaskGrid DepthwiseGrid(const ConvWorkload& workload, int64_t rows);
// Does what BuildKernel does. Precondition: it fits.
std::unique_ptr<ConvKernel> BuildDepthwiseKernel(const Schedule& schedule, const ConvWeights& weights);

}  // namespace tilesmith::direct_int8
