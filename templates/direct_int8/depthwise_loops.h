// The inner loops of quantised depthwise convolution with AVX-512 VNNI (quantized_depthwise_isa.cc).
//
// A block is 64 channels of a pixel, in the low half of which up to 32 may be alone. Four taps of a block
// are four vectors of bytes, which two rounds of unpacking turn into four vectors of words: of each 16
// channels, every vector has four that are adjacent. What packs sums into bytes brings them back in order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

inline constexpr int64_t kDepthwiseLanes = 64;
// Channels of a block whose vectors are only half as wide.
inline constexpr int64_t kDepthwiseNarrow = 32;

// Where the words of channel `c` of a block lie.
constexpr int64_t DepthwiseWord(int64_t c, bool narrow) {
  return c % 16 / 4 * (narrow ? 8 : 16) + c / 16 * 4 + c % 4;
}

// Columns of one output row, or of two.
struct DepthwiseColumns {
  const uint8_t* input = nullptr;  // what the first window begins with; blocks
  int64_t column_stride = 0;       // bytes from one window to the next
  const int32_t* taps = nullptr;   // [word][4], bytes from a window's begin
  int64_t words = 0;
  const int8_t* weights = nullptr;  // [word][64 words]
  const int32_t* bias = nullptr;    // 64, in the order of the words, as are the multipliers
  const float* multipliers = nullptr;
  int32_t zero = 0, low = 0, high = 255;  // of bytes without a sign
  uint8_t flip = 0;
  int64_t count = 0;
  uint8_t* out = nullptr;
  int64_t out_step = 0, out_row_step = 0;  // to the next pixel and to the second row
  int64_t channels = 0;                    // of a block; those of a narrow one are at most 32
};

#ifdef TILESMITH_X86
namespace avx512_vnni {
void ConvolveDepthwiseColumns(const DepthwiseColumns& columns);
// Windows of 3x3, next to each other: `taps` are those of the first window's first column, in both rows' four
// rows; weights: [first or second output row][column of the window][64 words].
void ConvolveDepthwisePairs(const DepthwiseColumns& columns);
}  // namespace avx512_vnni
#endif

}  // namespace tilesmith
