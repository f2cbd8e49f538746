// The kernel of quantised depthwise convolution on CPUs with AVX-512 VNNI, in any layout.
//
// A task is a block of 64 channels of some output rows of an image. The rows that they see are copied to the
// thread's scratch, padding included, in blocks; windows are multiplied from there.
#pragma once

#include <memory>

#include "ops/quantize/quantized_conv.h"

namespace tilesmith {

// Whether it computes the op on this CPU: of bytes, each group a channel, nothing added, rows of reasonable
// size, weights that are bytes with a sign.
bool QuantizedDepthwiseFits(const QuantizedConvOp& op, const Target& cpu);
// `op` need not outlive the kernel. Precondition: it fits.
std::unique_ptr<Kernel> MakeQuantizedDepthwiseKernel(const KernelRequest& request, const QuantizedConvOp& op);

}  // namespace tilesmith
