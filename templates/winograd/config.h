// The Winograd template's knobs, read once from a Config into a plain struct.
#pragma once

#include <cstdint>

#include "layouts/base/target.h"
#include "ops/conv/workload.h"
#include "templates/base/conv_template.h"
#include "templates/base/type_knobs.h"
#include "templates/direct/config.h"

namespace tilesmith::winograd {

// What a task is. The products of one element xi of the T x T transformed windows are one matrix product.
enum class Partition {
  kTileBlocks = 0,   // one block of tiles from input to output, in scratch of its thread's own
  kElements = 1,     // three stages over the whole batch; products spread by xi
  kOutChannels = 2,  // three stages; products spread by chunks of output channels
};

struct WinogradConfig {
  int64_t ic_block = 16;  // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 16;  // x of the output's; 0 is NHWC
  int64_t tile = 4;       // outputs of a tile along each axis
  Partition partition = Partition::kTileBlocks;
  int64_t tile_block = 0;        // tiles per task with kTileBlocks; 0 otherwise
  bool stream = false;           // outputs bypass the caches
  StoredTypes types;             // of input and output
  direct::DirectConfig product;  // register tile, unroll, prefetch of the matrix products
};

// What the products of a config's transformed windows and weights multiply.
direct::Factors ProductFactors(const Config& config);
// Configs of the template of bf16 have the knobs in_type, out_type and product_type; others have none of
// them.
WinogradConfig ReadConfig(const Config& config, const Target& cpu);

Support Supports(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Space(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Bf16Space(const ConvWorkload& workload, const Target& cpu);

// A config without tuning.
Config Default(const ConvWorkload& workload, const Target& cpu);
Config Bf16Default(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith::winograd
