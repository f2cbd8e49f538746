// A config as wanted, or as near to it as a space allows: for knobs that come from elsewhere.
#pragma once

#include <optional>

#include "templates/base/config.h"

namespace tilesmith {

// `base` with the knobs of `wanted` that the space has, each at the value it lists next to the wanted one.
// Where that is invalid, the valid config that is fewest steps along the knobs' values away; a step of a
// wanted knob counts as several of another one. nullopt when `base` is not of the space, or nothing near is
// valid.
std::optional<Config> NearestConfig(const ConfigSpace& space, const Config& base, const Config& wanted);

}  // namespace tilesmith
