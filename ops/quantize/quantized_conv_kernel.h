// The kernel of quantised convolution, in any layout.
//
// A task is a block of output channels in a tile of output pixels of an image. The part of the input that the
// tile sees is widened to 16 bits in the thread's scratch, or with VNNI and AMX copied, padding included:
// pixels one after the other, the group's channels adjacent. A window is then a few runs of adjacent numbers,
// and words of those, two or four of them, are multiplied at a time. Where tasks of one tile follow each
// other, a thread widens a tile once. Small groups are computed together as one.
//
// In a depthwise convolution the group is a block of channels, and each number lies beside its neighbour in
// the window. With AMX pixels whose windows lie a fixed distance apart are multiplied together
// (ops/conv/window_strips.h); with VNNI the lanes of few outputs are numbers of the window.
#pragma once

#include <memory>

#include "ops/quantize/quantized_conv.h"
#include "ops/quantize/quantized_conv_plan.h"

namespace tilesmith {

// Whether what a single output pixel sees, once widened, is of reasonable size.
bool QuantizedConvKernelFits(const ConvWorkload& workload);

struct QuantizedConvRequest {
  Layout in, out;  // of the input, and of the residual and the output; their types are the op's
  Target cpu;
  WindowCut cut = {};          // of depthwise convolutions by VNNI, the rows of a task alone
  BufferPool* pool = nullptr;  // that packed weights are shared in, if there is one
};

class PackedKernel : public Kernel {
 public:
  // The weights as the kernel reads them.
  virtual std::span<const std::byte> PackedWeights() const = 0;
};

// `op` need not outlive the kernel. Precondition: it fits.
std::unique_ptr<PackedKernel> MakeQuantizedConvKernel(const QuantizedConvOp& op,
                                                      const QuantizedConvRequest& request);

}  // namespace tilesmith
