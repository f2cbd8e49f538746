// Dense convolution, and of groups of more than 8 filters, in bf16 by AMX: tiles of 16 positions x 32 input
// channels times 32 x 16 output channels, summed in f32. A task copies the rows that it sees, with their
// padding, so that windows of neighbouring positions lie a fixed distance apart; 1x1 reads its input where it
// lies. Original; the copy with its padding is how oneDNN's brgemm convolutions do it, too.
//
// The amx_bf16 template's knobs, read once from a Config into a plain struct.
#pragma once

#include <memory>

#include "templates/amx/config.h"
#include "templates/amx/schedule.h"
#include "templates/base/config.h"
#include "templates/base/conv_template.h"

namespace tilesmith {
namespace amx_bf16 {

constexpr int64_t kBf16Bytes = 2;

struct AmxBf16Config {
  amx::AmxConfig common;
  StoredTypes types;
};

AmxBf16Config ReadConfig(const Config& config);

// The amx_bf16 template's workload and config as the kernel computes them.
struct Schedule : amx::Schedule {};

Schedule MakeSchedule(const ConvWorkload& workload, const AmxBf16Config& config, const Target& cpu);

// Precondition: cpu.amx.
std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu,
                                        const ConvWeights& weights);

}  // namespace amx_bf16

const ConvTemplate& AmxBf16Template();
}  // namespace tilesmith
