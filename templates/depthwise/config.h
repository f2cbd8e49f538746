// Depthwise convolution: one filter per channel, any kernel size, stride, padding and dilation. A vector of
// channels at a time; register tile of output rows x columns, so that a pixel loaded once serves every tap
// that reads it; weights in registers where they fit. Original.
//
// The depthwise template's knobs, read once from a Config into a plain struct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layouts/base/target.h"
#include "ops/conv/workload.h"
#include "templates/base/config.h"
#include "templates/base/conv_template.h"

namespace tilesmith {
namespace depthwise {

// Where the weights of a register tile live while they are multiplied.
enum class Weights {
  kRegisters = 0,  // all kernel taps in registers, for as long as a vector of channels lasts
  kRow = 1,        // one kernel row at a time in registers
  kMemory = 2,     // operands of the FMAs
};

struct DepthwiseConfig {
  int64_t block = 16;      // x of NCHW[x]c, in and out; 0 is NHWC
  int64_t row_tile = 1;    // register tile: output rows ...
  int64_t width_tile = 7;  // ... by output positions in a row; tiles of a row are equally wide, or almost
  Weights weights = Weights::kMemory;
  bool unroll = false;  // kernel rows unrolled, which takes code for every kind of edge
  bool pairs = false;   // output rows two by two, with fewer multiplications (row_pairs.h)
  int64_t rows = 1;     // output rows per task ...
  int64_t vectors = 1;  // ... of this many vectors of channels
  StoredTypes types;    // all arithmetic is in f32
};

// Configs of depthwise_bf16 have the knobs in_type and out_type; others have none of them.
DepthwiseConfig ReadConfig(const Config& config);

// Block sizes x of NCHW[x]c that whole vectors fill, and 0 for NHWC.
std::vector<int64_t> DepthwiseBlocks(const ConvWorkload& workload, const Target& cpu);

// The knobs of the register tile, named with a prefix where they are among others: row_tile, width_tile,
// weights, unroll, pairs.
std::vector<Knob> TileKnobs(const ConvWorkload& workload, const Target& cpu, std::string_view prefix);
// Reads them; the rest stays default.
DepthwiseConfig ReadTile(const Config& config, std::string_view prefix);
void SetTile(const DepthwiseConfig& tile, std::string_view prefix, Config& config);
// Why they contradict each other; "" if they do not. Whether the tile fits is another question.
std::string WhyTileInvalid(const ConvWorkload& workload, const Target& cpu, const DepthwiseConfig& config);
// Tiles worth a try without tuning, largest first; the last one fits where any does.
std::vector<DepthwiseConfig> DefaultTiles(const ConvWorkload& workload, const Target& cpu);

}  // namespace depthwise

const ConvTemplate& DepthwiseTemplate();
// depthwise_bf16 stores the input, the output or both in bf16; its arithmetic is in f32.
const ConvTemplate& DepthwiseBf16Template();

}  // namespace tilesmith
