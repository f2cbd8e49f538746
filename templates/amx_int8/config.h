// Convolution of bytes, dense and of groups of more than 8 filters, by AMX: tiles of 16 positions x 64 input
// channels times 64 x 16 output channels, whose exact sums become bytes as those of the op do, bit for bit,
// between the products of the next ones. Original; input is copied as by amx_bf16, and the knobs are those of
// all templates by AMX tiles (templates/amx/config.h).
#pragma once

#include <memory>

#include "templates/amx/schedule.h"

namespace tilesmith {

const ConvTemplate& AmxInt8Template();

namespace amx_int8 {

struct Schedule : amx::Schedule {};

// Preconditions: cpu.amx; weights.quantized, an op of the schedule's workload.
std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu,
                                        const ConvWeights& weights);

}  // namespace amx_int8
}  // namespace tilesmith
