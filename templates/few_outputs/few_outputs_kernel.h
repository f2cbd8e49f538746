// A built few_outputs conv: packed weights, one code buffer with all kernel variants, and the loops around
// them.
#pragma once

#include <memory>

#include "layouts/base/cpu.h"
#include "templates/conv_template.h"
#include "templates/few_outputs/geometry.h"

namespace tilesmith::few_outputs {

// Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it.
std::unique_ptr<ConvKernel> BuildFewOutputsKernel(Geometry geometry, const CpuInfo& cpu,
                                                  const ConvWeights& weights);

}  // namespace tilesmith::few_outputs
