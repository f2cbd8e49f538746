// The amx_int8 template's workload and config as the kernel computes them.
#pragma once

#include <memory>

#include "templates/amx/schedule.h"

namespace tilesmith::amx_int8 {

struct Schedule : amx::Schedule {};

Schedule MakeSchedule(const ConvWorkload& workload, const amx::AmxConfig& config, const Target& cpu);

// Preconditions: cpu.amx; weights.quantized, an op of the schedule's workload.
std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu,
                                        const ConvWeights& weights);

}  // namespace tilesmith::amx_int8
