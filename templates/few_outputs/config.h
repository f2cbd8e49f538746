// The few_outputs template's knobs, read once from a Config into a plain struct.
#pragma once

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"

namespace tilesmith::few_outputs {

// Into which cache each tile fetches the input rows that the one below it will read and it does not. A few
// rows of every plane are too many streams for the hardware to follow.
enum class Prefetch { kNone = 0, kSecondLevel = 1, kFirstLevel = 2 };

struct FewOutputsConfig {
  int64_t lanes = 16;          // positions of a vector
  int64_t outputs = 1;         // register tile: output channels ...
  int64_t vectors = 4;         // ... by vectors of a row ...
  int64_t tile_rows = 1;       // ... by rows
  bool balance_tiles = false;  // tiles of equal width instead of full ones and a rest
  int64_t ic_unroll = 1;
  int64_t row_tiles = 1;  // tiles of tile_rows rows per task
  Prefetch prefetch = Prefetch::kNone;
  int64_t flat_width = 0;  // 1x1 only: pixels of an image treated as rows of this width; 0 keeps the rows
};

FewOutputsConfig ReadConfig(const Config& config);

Support Supports(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Space(const ConvWorkload& workload, const Target& cpu);
// A config without tuning: all outputs, and as much of a row as the registers take.
Config Default(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith::few_outputs
