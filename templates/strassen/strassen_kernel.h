// A Strassen conv, built: packed weights, code, and the order of work of the three partitions.
#pragma once

#include <memory>

#include "templates/conv_template.h"
#include "templates/strassen/geometry.h"

namespace tilesmith::strassen {

// Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it.
std::unique_ptr<ConvKernel> BuildStrassenKernel(Geometry geometry, const CpuInfo& cpu,
                                                const ConvWeights& weights);

}  // namespace tilesmith::strassen
