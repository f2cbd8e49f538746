// The winograd_int8 template's knobs, read once from a Config into a plain struct.
#pragma once

#include "layouts/base/target.h"
#include "ops/quantize/quantized_winograd_kernel.h"
#include "templates/base/conv_template.h"

namespace tilesmith::winograd_int8 {

struct WinogradInt8Config {
  int64_t ic_block = 0;      // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 0;      // x of the output's; 0 is NHWC
  QuantizedWinogradCut cut;  // with no zeros
};

WinogradInt8Config ReadConfig(const Config& config);

Support Supports(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Space(const ConvWorkload& workload, const Target& cpu);
// What the kernel chooses by itself, in NHWC.
Config Default(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith::winograd_int8
