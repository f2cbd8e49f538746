// The knobs of cuda_depthwise, cuda_grouped and cuda_portable, which have them in common, and which workloads
// each is for.
#pragma once

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"

namespace tilesmith::cuda_gather {

struct GatherConfig {
  int64_t ic_block = 1, oc_block = 1;          // 0 is NHWC
  int64_t tile_f = 1, tile_y = 1, tile_x = 1;  // outputs of a thread
  int64_t threads = 128;                       // of a block
  int64_t unroll = 1;                          // channels
  bool channels_first = false;                 // neighbouring threads have neighbouring channels
};

GatherConfig ReadConfig(const Config& config);

Support SupportsDepthwise(const ConvWorkload& workload, const Target& target);
Support SupportsGrouped(const ConvWorkload& workload, const Target& target);
Support SupportsPortable(const ConvWorkload& workload, const Target& target);
ConfigSpace Space(const ConvWorkload& workload, const Target& target);
Config Default(const ConvWorkload& workload, const Target& target);

}  // namespace tilesmith::cuda_gather
