// What templates of byte convolutions have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/quantize/quantized_conv_kernel.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

// "ic_block" and "oc_block": NCHW, blocks of whole vectors, and NHWC.
std::vector<Knob> ByteLayoutKnobs(const ConvWorkload& workload);

// The op that the weights are. Precondition: weights.quantized, an op of the workload.
const QuantizedConvOp& ByteConvOf(const ConvWorkload& workload, const ConvWeights& weights);
// A kernel of such an op as one that templates build.
std::unique_ptr<ConvKernel> AsConvKernel(std::unique_ptr<PackedKernel> kernel);

}  // namespace tilesmith
