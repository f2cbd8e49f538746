// Seeded test data: the same seed gives the same floats on every machine and standard library.
#pragma once

#include <cstdint>
#include <span>

#include "layouts/base/split_mix.h"

namespace tilesmith {

class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : bits_(seed) {}

  uint64_t Next() { return bits_.Next(); }
  // Uniform in [low, high].
  int64_t Integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }
  // Uniform in [low, high), in steps of 2^-24 of the width.
  float Uniform(float low = -1.0f, float high = 1.0f) {
    return low + (high - low) * (static_cast<float>(Next() >> 40) * 0x1p-24f);
  }
  // One element of a non-empty range.
  template <typename Range>
  auto Pick(const Range& range) {
    return *(range.begin() + Integer(0, static_cast<int64_t>(range.size()) - 1));
  }

 private:
  SplitMix64 bits_;
};

inline void FillUniform(std::span<float> values, uint64_t seed, float low = -1.0f, float high = 1.0f) {
  TestRandom random(seed);
  for (float& value : values) value = random.Uniform(low, high);
}

// Integers in [-8, 8]: sums of products stay exact in float up to some 2^18 terms, so results compare equal
// whatever the order of summation.
inline void FillIntegers(std::span<float> values, uint64_t seed) {
  TestRandom random(seed);
  for (float& value : values) value = static_cast<float>(random.Integer(-8, 8));
}

}  // namespace tilesmith
