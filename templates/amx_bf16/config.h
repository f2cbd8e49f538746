// The amx_bf16 template's knobs, read once from a Config into a plain struct.
#pragma once

#include "layouts/base/target.h"
#include "ops/conv/window_plan.h"
#include "templates/base/conv_template.h"
#include "templates/base/type_knobs.h"

namespace tilesmith::amx_bf16 {

// What is fetched while tiles are multiplied.
enum class Prefetch {
  kNothing = 0,
  kWeights = 1,  // of some steps later
  kWindows = 2,  // of the positions that are next
};

struct AmxConfig {
  int64_t ic_block = 0;  // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 0;  // x of the output's; 0 is NHWC
  WindowCut cut;         // with no zeros
  Prefetch prefetch = Prefetch::kNothing;
  StoredTypes types;
};

AmxConfig ReadConfig(const Config& config);

// Sums are made of 32 output channels at a time.
WindowForm FormOf();

Support Supports(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Space(const ConvWorkload& workload, const Target& cpu);
Config Default(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith::amx_bf16
