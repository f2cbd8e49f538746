// The kernel of quantised depthwise convolution on CPUs with AVX-512 VNNI, in any layout.
//
// A task is a block of 64 channels of some output rows of an image. The rows that they see are copied to the
// thread's scratch, padding included, in blocks; windows are multiplied from there.
#pragma once

#include <memory>

#include "ops/quantize/quantized_conv_kernel.h"

namespace tilesmith {

// Whether it computes the conv on this CPU: of bytes, each group a channel, nothing added, rows of reasonable
// size, weights that are bytes with a sign.
bool QuantizedDepthwiseFits(const ConvWorkload& workload, const Target& cpu);
// Output rows of a task. Precondition: it fits.
int64_t QuantizedDepthwiseRows(const ConvWorkload& workload, int64_t cores);
// Where the tasks lie that compute so many rows each.
TaskGrid QuantizedDepthwiseGrid(const ConvWorkload& workload, int64_t rows);
// `op` need not outlive the kernel. Precondition: it fits.
std::unique_ptr<PackedKernel> MakeQuantizedDepthwiseKernel(const QuantizedConvOp& op,
                                                           const QuantizedConvRequest& request);

}  // namespace tilesmith
