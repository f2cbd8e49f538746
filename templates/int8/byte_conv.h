// What templates of byte convolutions have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/quantize/quantized_conv.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

// "ic_block" and "oc_block": NCHW, blocks of whole vectors, and NHWC.
std::vector<Knob> ByteLayoutKnobs(const ConvWorkload& workload);

// The op that the weights are. Precondition: weights.quantized, an op of the workload.
const QuantizedConvOp& ByteConvOf(const ConvWorkload& workload, const ConvWeights& weights);

// Whether kernels multiply bytes: not where weights are no bytes with a sign, and not in depthwise
// convolutions, whose kernel for that is another one. Precondition: workload.bytes.
bool MultipliesBytes(const ConvWorkload& workload, const Target& cpu);

// A template with its default in some layouts, for a convolution that nobody has tuned.
struct UntunedConv {
  const ConvTemplate* conv_template = nullptr;
  Config config;
};
// Input and output in the order of `layout`, which is any where CopiesFit and the target is a CPU. nullopt
// where no template of the target's computes it so (registry.cc). Precondition: workload.bytes.
std::optional<UntunedConv> UntunedByteConv(const ConvWorkload& workload, const Layout& layout,
                                           const Target& target);

}  // namespace tilesmith
