// The direct_int8 template's knobs, read once from a Config into a plain struct.
#pragma once

#include "layouts/base/target.h"
#include "ops/quantize/quantized_conv_plan.h"
#include "templates/base/conv_template.h"

namespace tilesmith::direct_int8 {

struct DirectInt8Config {
  int64_t ic_block = 0;  // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 0;  // x of the output's; 0 is NHWC
  WindowCut cut;         // with no zeros
};

DirectInt8Config ReadConfig(const Config& config);

Support Supports(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Space(const ConvWorkload& workload, const Target& cpu);
// What a kernel of bytes chooses by itself, in NHWC.
Config Default(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith::direct_int8
