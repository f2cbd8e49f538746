// A graph tuner can only choose layouts it has records for. After the search, good configs are therefore
// moved to every other pair of layouts and measured there too.
#pragma once

#include <optional>
#include <vector>

#include "templates/conv_template.h"

namespace tilesmith {

// A pair of layouts as a template's knobs say it.
struct BlockPair {
  int64_t ic_block = 0, oc_block = 0;
  auto operator<=>(const BlockPair&) const = default;
};

// Every combination of the values of the knobs ic_block and oc_block, or every value of the knob block twice;
// empty for a space with neither. Sorted.
std::vector<BlockPair> BlockPairs(const ConfigSpace& space);

// `config` with the pair's blocks. Where that is invalid, the nearest valid config: as few other knobs
// changed as possible (at most two), by as few steps as possible. nullopt when there is none, or when
// `config` is not of the space.
std::optional<Config> Transplant(const ConfigSpace& space, const Config& config, const BlockPair& pair);

// The pair `config` has; nullopt for a config of a space without such knobs.
std::optional<BlockPair> BlocksOf(const Config& config);

}  // namespace tilesmith
