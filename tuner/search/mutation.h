// Steps from config to config, on indices of a space: what genetic and model-guided search breed with.
#pragma once

#include "templates/base/config.h"
#include "tuner/search/random_source.h"

namespace tilesmith {

// One knob changed: mostly by one step, else to any of its values. May return `index` itself, or an invalid
// one.
uint64_t MutateKnob(const ConfigSpace& space, uint64_t index, RandomSource& random);

// Every knob from either parent.
uint64_t CrossKnobs(const ConfigSpace& space, uint64_t a, uint64_t b, RandomSource& random);

}  // namespace tilesmith
