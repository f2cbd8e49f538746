// Rows of planes as pixels of bf16 whose channels are adjacent: how a first convolution reads an image.
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith::amx_bf16 {

struct PlaneRows {
  const float* in = nullptr;  // the first column of the first channel
  int64_t plane = 0;          // elements from channel to channel
  int64_t step = 1;           // the same from column to column
  int64_t channels = 0;
  uint16_t* out = nullptr;
  int64_t padded = 0;  // even, at least `channels`: elements from column to column
  int64_t columns = 0;
};

}  // namespace tilesmith::amx_bf16

namespace tilesmith {

// out[x * padded + c] = c < channels ? in[c * plane + x * step] rounded to nearest even : 0, for x < columns,
// c < padded. A NaN stays one. Thread-safe.
TILESMITH_DECLARE_ISA(void InterleavePlanes(const amx_bf16::PlaneRows& rows))

}  // namespace tilesmith
