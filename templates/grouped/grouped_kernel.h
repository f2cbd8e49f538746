// A built grouped conv: packed weights, one code buffer with all kernel variants, and the loops around them.
#pragma once

#include <memory>

#include "layouts/base/cpu.h"
#include "templates/conv_template.h"
#include "templates/grouped/geometry.h"

namespace tilesmith::grouped {

// Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it.
std::unique_ptr<ConvKernel> BuildGroupedKernel(Geometry geometry, const CpuInfo& cpu,
                                               const ConvWeights& weights);

}  // namespace tilesmith::grouped
