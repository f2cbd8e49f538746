// The portable template's knobs, read once from a Config into a plain struct.
#pragma once

#include <cstdint>

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"

namespace tilesmith::portable {

struct PortableConfig {
  int64_t ic_block = 16;    // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 16;    // x of the output's; 0 is NHWC
  bool over_width = false;  // vectors over width, which suits groups of few channels; else over channels
  int64_t ow_tile = 1;      // over channels: positions of a tile
  int64_t rows = 1;         // output rows per task
};

PortableConfig ReadConfig(const Config& config);

Support Supports(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Space(const ConvWorkload& workload, const Target& cpu);
// A config without tuning.
Config Default(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith::portable
