// The depthwise_pair template's knobs, read once from a Config into a plain struct.
#pragma once

#include <cstdint>

#include "layouts/base/target.h"
#include "ops/conv/workload.h"
#include "templates/base/conv_template.h"
#include "templates/depthwise/config.h"
#include "templates/direct/config.h"

namespace tilesmith::depthwise_pair {

enum class PairKind {
  kNone,            // neither
  kDepthwiseFirst,  // depthwise, then 1x1
  kPointwiseFirst,  // 1x1, then depthwise
};
PairKind KindOf(const ConvWorkload& workload);

// The two convs, each on its own.
struct PairConvs {
  ConvWorkload depthwise, pointwise;
};
// Precondition: a pair.
PairConvs ConvsOf(const ConvWorkload& workload);

struct DepthwisePairConfig {
  int64_t ic_block = 16;                 // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 16;                 // x of the output's; 0 is NHWC
  int64_t rows = 1;                      // output rows of the depthwise conv per task ...
  int64_t parts = 1;                     // ... for one of this many parts of the 1x1 conv's output channels
  int64_t mid_rows = 1;                  // 1x1 first: rows of the middle tensor computed by one call
  depthwise::DepthwiseConfig depthwise;  // its rows are `rows`
  direct::DirectConfig pointwise;
};

DepthwisePairConfig ReadConfig(const ConvWorkload& workload, const Target& cpu, const Config& config);

Support Supports(const ConvWorkload& workload, const Target& cpu);
// Precondition here and below: a pair.
ConfigSpace Space(const ConvWorkload& workload, const Target& cpu);

// A config without tuning. Invalid only when the depthwise kernel is too large for every config.
Config Default(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith::depthwise_pair
