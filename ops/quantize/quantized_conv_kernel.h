// The kernel of quantised convolution, in any layout.
//
// A task is a block of output channels in a tile of output pixels of an image. The part of the input that the
// tile sees is widened to 16 bits in the thread's scratch, padding included: pixels one after the other, the
// group's channels adjacent. A window is then a few runs of adjacent numbers, and pairs of those are
// multiplied at a time. Tasks of one tile follow each other, so that a thread widens a tile once.
//
// In a depthwise convolution the group is a block of channels, and each number lies beside its neighbour in
// the window.
#pragma once

#include <memory>

#include "ops/quantize/quantized_conv.h"

namespace tilesmith {

// Whether what a single output pixel sees, once widened, is of reasonable size.
bool QuantizedConvKernelFits(const ConvWorkload& workload);
// `op` need not outlive the kernel. Precondition: it fits.
std::unique_ptr<Kernel> MakeQuantizedConvKernel(const KernelRequest& request, const QuantizedConvOp& op);

}  // namespace tilesmith
