// The transforms of Winograd's convolution F(2x2, 3x3) in integers, built for each instruction set
// (quantized_winograd_isa.cc).
//
// For a window d of 4x4 inputs and weights g of 3x3, with
//   B' = (1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1),  G = (1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1),
//   A' = (1 1 1 0; 0 1 -1 -1),
// the 2x2 outputs are A' ((G g G') * (B' d B)) A, where * multiplies elements. With 2G in the place of G all
// are integers and the outputs four times as large. Sums are modulo 2^32.
// Source: A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2015.
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

inline constexpr int64_t kWinogradElements = 16;  // of a window

// Windows of a row of tiles, which overlap by two columns: channels of a pixel are adjacent, a multiple of
// QuantizedConvLanes of them.
struct WinogradWindows {
  const int16_t* in = nullptr;
  int64_t row_step = 0;  // numbers
  int64_t tiles = 0, channels = 0;
  int16_t* out = nullptr;    // [element][tile][channel]
  int64_t element_step = 0;  // numbers
};

// Products of a row of tiles, summed over the input's channels, and the outputs of its two rows.
struct WinogradProducts {
  const int32_t* in = nullptr;  // [element][tile][lane]
  int64_t element_step = 0;     // numbers
  int64_t tiles = 0;
  const int32_t* bias = nullptr;  // [lane]
  int32_t* out = nullptr;  // [row][column][lane], two columns a tile: a quarter of A' in A, and the bias
};

// out = B' d B. Precondition: |d| < 2^13.
TILESMITH_DECLARE_ISA(void TransformWindows(const WinogradWindows& windows))
TILESMITH_DECLARE_ISA(void SumProducts(const WinogradProducts& products))

}  // namespace tilesmith
