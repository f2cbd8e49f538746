// A built depthwise conv: its planes, and the loops around them.
#pragma once

#include <memory>

#include "layouts/base/cpu.h"
#include "templates/conv_template.h"
#include "templates/depthwise/depthwise_geometry.h"

namespace tilesmith::depthwise {

// Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it.
std::unique_ptr<ConvKernel> BuildDepthwiseKernel(Geometry geometry, const CpuInfo& cpu,
                                                 const ConvWeights& weights);

}  // namespace tilesmith::depthwise
