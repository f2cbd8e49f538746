// A graph tuner can only choose layouts it has records for. After the search, good configs are therefore
// moved to every other pair of layouts and measured there too.
#pragma once

#include <optional>

#include "templates/base/conv_template.h"

namespace tilesmith {

// `config` moved to the layouts of `pair`. Where that is invalid, the nearest valid config: as few other
// knobs changed as possible (at most two), by as few steps as possible. nullopt when there is none, or when
// `config` is not of the space.
std::optional<Config> Transplant(const ConvTemplate& conv_template, const ConvWorkload& workload,
                                 const ConfigSpace& space, const Config& config, const LayoutPair& pair);

}  // namespace tilesmith
