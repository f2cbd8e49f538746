// The amx_bf16 template's workload and config as the kernel computes them.
#pragma once

#include <memory>

#include "templates/amx/schedule.h"
#include "templates/amx_bf16/config.h"

namespace tilesmith::amx_bf16 {

struct Schedule : amx::Schedule {};

Schedule MakeSchedule(const ConvWorkload& workload, const AmxBf16Config& config, const Target& cpu);

// Precondition: cpu.amx.
std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu,
                                        const ConvWeights& weights);

}  // namespace tilesmith::amx_bf16
