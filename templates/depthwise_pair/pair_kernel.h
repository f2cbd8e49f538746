// A built fused pair: the two halves' kernels, and the loops that run them tile by tile.
#pragma once

#include <memory>

#include "layouts/base/cpu.h"
#include "templates/conv_template.h"
#include "templates/depthwise_pair/pair_geometry.h"

namespace tilesmith::depthwise_pair {

// Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it.
std::unique_ptr<ConvKernel> BuildPairKernel(PairGeometry geometry, const CpuInfo& cpu,
                                            const ConvWeights& weights);

}  // namespace tilesmith::depthwise_pair
