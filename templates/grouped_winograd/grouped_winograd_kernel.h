// A built grouped Winograd conv: transformed weights, code, and the loop over blocks of tiles.
#pragma once

#include <memory>

#include "templates/grouped_winograd/grouped_winograd_config.h"

namespace tilesmith::grouped_winograd {

// Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it.
std::unique_ptr<ConvKernel> BuildGroupedWinogradKernel(const ConvWorkload& workload,
                                                       const GroupedWinogradConfig& config,
                                                       const CpuInfo& cpu, const ConvWeights& weights);

}  // namespace tilesmith::grouped_winograd
