#include "tuner/search/mutation.h"

#include <algorithm>

namespace tilesmith {
namespace {

constexpr double kStepMutation = 0.7;

}  // namespace

uint64_t MutateKnob(const ConfigSpace& space, uint64_t index, RandomSource& random) {
  const std::vector<Knob>& knobs = space.knobs();
  if (knobs.empty()) return index;
  const size_t chosen = random.Below(knobs.size());
  uint64_t radix = 1;
  for (size_t k = 0; k < chosen; ++k) radix *= knobs[k].values.size();
  const uint64_t count = knobs[chosen].values.size();
  const uint64_t old = index / radix % count;
  uint64_t position = random.Below(count);
  if (random.Chance(kStepMutation)) {
    const bool up = random.Chance(0.5);
    position = up ? std::min(old + 1, count - 1) : old - (old > 0);
  }
  return index - old * radix + position * radix;
}

uint64_t CrossKnobs(const ConfigSpace& space, uint64_t a, uint64_t b, RandomSource& random) {
  uint64_t child = 0;
  uint64_t radix = 1;
  for (const Knob& knob : space.knobs()) {
    const uint64_t count = knob.values.size();
    child += radix * ((random.Chance(0.5) ? a : b) / radix % count);
    radix *= count;
  }
  return child;
}

}  // namespace tilesmith
