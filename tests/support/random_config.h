// Random configs, and how many cases sweeps draw.
#pragma once

#include <cstdlib>
#include <optional>

#include "templates/base/config.h"
#include "tests/support/random.h"

namespace tilesmith {

// A random valid config; nullopt where so many tries find none.
inline std::optional<Config> RandomValidConfig(const ConfigSpace& space, TestRandom& random, int tries) {
  for (int i = 0; i < tries; ++i) {
    const uint64_t index = random.Next() % space.size();
    if (space.IsValid(index)) return space.At(index);
  }
  return std::nullopt;
}

// What the environment's variable says, or `preset`.
inline int CaseCount(const char* variable, int preset) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? preset : std::atoi(text);
}

}  // namespace tilesmith
