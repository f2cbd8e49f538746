// The direct template's knobs, read once from a Config into a plain struct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "layouts/base/target.h"
#include "ops/conv/workload.h"
#include "templates/base/conv_template.h"

namespace tilesmith::direct {

// Where an input element lives while it is multiplied with the weight vectors of one input channel.
enum class Broadcast {
  kEmbedded = 0,  // a memory operand of every FMA (AVX-512 only)
  kRegister = 1,  // broadcast once into a register; all weight vectors in registers
  kMixed = 2,     // like kRegister, but the last weight vector is a memory operand: one register saved
};

struct DirectConfig {
  int64_t ic_block = 16;       // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 16;       // x of the output's; 0 is NHWC
  int64_t oc_vectors = 2;      // register tile: vectors of output channels ...
  int64_t width_tile = 7;      // ... by output positions in a row
  bool balance_tiles = false;  // tiles of equal width instead of full ones and a rest
  Broadcast broadcast = Broadcast::kRegister;
  int64_t ic_unroll = 4;
  int64_t ic_pass = 0;     // input channels accumulated per pass over a row block; 0 is all
  int64_t rows = 1;        // output rows per task
  bool oc_inner = false;   // tasks: consecutive ones share the rows instead of the weights
  int64_t flat_width = 0;  // 1x1 only: pixels of an image treated as rows of this width; 0 keeps the rows
  int64_t prefetch = 0;    // weight vectors fetched this far ahead; 0 is none
};

DirectConfig ReadConfig(const Config& config);
// Only the knobs of the register tile and of the loop over channels inside it.
DirectConfig ReadTile(const Config& config);

// Why no kernel has this register tile, for rows of `width` and as many output channels of a group; empty
// when one can.
std::string WhyTileInvalid(const DirectConfig& config, int64_t width, int64_t outputs, const Target& cpu);

Support Supports(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Space(const ConvWorkload& workload, const Target& cpu);

// Why there is no config that is valid and decent everywhere; "" when there is.
std::string WhyNoDefault(const ConvWorkload& workload, const Target& cpu);
// A config without tuning: the widest tile that fits the registers, vector-width blocks. Precondition:
// WhyNoDefault is empty.
Config Default(const ConvWorkload& workload, const Target& cpu);
// As in TaskPlaces.
std::optional<Config> RowsDefault(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith::direct
