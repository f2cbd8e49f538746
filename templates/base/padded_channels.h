// Parameters of channels, padded to whole blocks of a layout.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tilesmith {

// `count` values, each `otherwise` where there are none, and zeros up to `padded`.
inline std::vector<float> PaddedChannels(const float* values, float otherwise, int64_t count,
                                         int64_t padded) {
  std::vector<float> result(padded, 0.0F);
  values != nullptr ? std::copy_n(values, count, result.begin())
                    : std::fill_n(result.begin(), count, otherwise);
  return result;
}

}  // namespace tilesmith
