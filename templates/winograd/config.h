// Winograd convolution, F(2 x 2), F(4 x 4) and F(6 x 6) for dense 3x3 convs of stride 1: 2.25, 4 and 5.06
// times fewer multiplications than the direct template, at the price of larger rounding errors and of
// transforms. With stride 2, tiles of 2, 3 and 4: 1.44, 1.65 and 1.78 times fewer.
//
// The Winograd template's knobs, read once from a Config into a plain struct.
#pragma once

#include <cstdint>

#include "layouts/base/target.h"
#include "ops/conv/workload.h"
#include "templates/base/config.h"
#include "templates/base/conv_template.h"
#include "templates/direct/config.h"

namespace tilesmith {
namespace winograd {

// Partition says what a task is. The products of one element xi of the T x T transformed windows are one
// matrix product.
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

}  // namespace winograd

// Name "winograd".
const ConvTemplate& WinogradTemplate();
// "winograd_bf16": the same with input, output or both stored in bf16. Products are in f32, or, of the
// smallest tile, whose errors grow least, in bf16 on CPUs with AVX-512 BF16.
const ConvTemplate& WinogradBf16Template();

}  // namespace tilesmith
