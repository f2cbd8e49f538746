// The Strassen template's knobs, read once from a Config into a plain struct.
#pragma once

#include <cstdint>

#include "layouts/base/target.h"
#include "ops/conv/workload.h"
#include "templates/base/conv_template.h"
#include "templates/direct/config.h"

namespace tilesmith::strassen {

// What a task is, and who adds up the input.
enum class Partition {
  kBlocks = 0,       // one block of pixels, from input to output: every thread reads all weights
  kOutChannels = 1,  // a chunk of output channels of a block; the sums are a stage of their own before
  kOwnSums = 2,      // a chunk of output channels of an image; every thread adds up all input it multiplies
};

struct StrassenConfig {
  int64_t ic_block = 16;  // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 16;  // x of the output's; 0 is NHWC
  Partition partition = Partition::kBlocks;
  int64_t row = 14;                             // pairs of pixels per matrix product
  int64_t rows = 1;                             // products per block
  direct::DirectConfig product;                 // register tile, unroll, prefetch of the products
  int64_t block() const { return row * rows; }  // pairs
};

StrassenConfig ReadConfig(const Config& config, const Target& cpu);

Support Supports(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Space(const ConvWorkload& workload, const Target& cpu);

// A config without tuning.
Config Default(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith::strassen
