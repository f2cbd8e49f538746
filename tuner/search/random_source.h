// Random numbers that are the same with every standard library (std distributions are not).
#pragma once

#include <cstdint>
#include <random>

namespace tilesmith {

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

}  // namespace tilesmith
