#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <unordered_set>
#include <vector>

#include "templates/base/config.h"

namespace tilesmith {

// Random numbers that are the same with every standard library (std distributions are not).
class RandomSource {
 public:
  explicit RandomSource(uint64_t seed) : engine_(seed) {}
  // Uniform in [0, limit); the bias of the remainder is below limit / 2^64. Precondition: limit > 0.
  uint64_t Below(uint64_t limit) { return engine_() % limit; }
  // Uniform in [0, 1).
  double Unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  bool Chance(double probability) { return Unit() < probability; }

 private:
  std::mt19937_64 engine_;
};

// Random valid configs of a space, each at most once.
//
// Small spaces are listed and shuffled, so that every valid config comes up in the end. Large ones are
// sampled by rejection, which is quick even where one config in a hundred is valid, and given up after many
// misses in a row. `space` must outlive the sampler.
class ValidSampler {
 public:
  explicit ValidSampler(const ConfigSpace& space) : space_(space) {}

  // A valid index that is not in `taken`, or nullopt when none is found.
  std::optional<uint64_t> Draw(const std::unordered_set<uint64_t>& taken, RandomSource& random);

 private:
  void List(RandomSource& random);

  const ConfigSpace& space_;
  bool listed_ = false;
  std::vector<uint64_t> left_;  // of a small space, shuffled
};

// Steps from config to config, on indices of a space: what genetic and model-guided search breed with.
//
// One knob changed: mostly by one step, else to any of its values. May return `index` itself, or an invalid
// one.
uint64_t MutateKnob(const ConfigSpace& space, uint64_t index, RandomSource& random);

// Every knob from either parent.
uint64_t CrossKnobs(const ConfigSpace& space, uint64_t a, uint64_t b, RandomSource& random);

// A config as wanted, or as near to it as a space allows: for knobs that come from elsewhere.
//
// `base` with the knobs of `wanted` that the space has, each at the value it lists next to the wanted one.
// Where that is invalid, the valid config that is fewest steps along the knobs' values away; a step of a
// wanted knob counts as several of another one. nullopt when `base` is not of the space, or nothing near is
// valid.
std::optional<Config> NearestConfig(const ConfigSpace& space, const Config& base, const Config& wanted);

}  // namespace tilesmith
