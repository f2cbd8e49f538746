// Byte offsets inside one image, as generated code needs them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "layouts/layout.h"

namespace tilesmith {

constexpr int64_t kFloatBytes = sizeof(float);

struct ImageStrides {
  int64_t block = 1;  // channels stored side by side
  int64_t element_bytes = kFloatBytes;
  int64_t pixel_bytes = 0, row_bytes = 0, block_bytes = 0;

  ImageStrides() = default;
  ImageStrides(const Layout& layout, int64_t channels, int64_t height, int64_t width)
      : block(layout.BlockFor(channels)),
        element_bytes(layout.element_bytes()),
        pixel_bytes(block * element_bytes),
        row_bytes(width * pixel_bytes),
        block_bytes(height * row_bytes) {}

  // Where pixel 0 of `channel` is, in a view with that block_shift (InputView).
  int64_t ChannelOffset(int64_t channel, int64_t block_shift = 0) const {
    return channel / block * (block_bytes + block_shift) + channel % block * element_bytes;
  }
};

// `bytes` past `base`, which may lie outside the tensor when the result is not read: by way of integers,
// since pointers may not go there.
inline const float* BytesPast(const float* base, int64_t bytes) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<const float*>(reinterpret_cast<intptr_t>(base) + bytes);
}
inline float* BytesPast(float* base, int64_t bytes) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<float*>(reinterpret_cast<intptr_t>(base) + bytes);
}

}  // namespace tilesmith
