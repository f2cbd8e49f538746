// Inner loops of the portable Winograd template, compiled once per instruction set. Plain values and pointers
// only: see layouts/base/isa_dispatch.h for why.
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"
#include "templates/winograd/weights.h"

namespace tilesmith {

constexpr int kWinogradLanes = 16;  // channels at a time
constexpr int kWinogradWindow = 6;  // T of F(4 x 4, 3 x 3)
constexpr int kWinogradTile = 4;    // its m
constexpr int kWinogradPairs = 2;   // of interpolation points

// Some values times coefficients, added up in this order: the first product alone, those with 1 or -1 added
// or subtracted, the others by fused multiply-adds.
struct WinogradSum {
  struct Term {
    float coefficient = 0;
    int index = 0;
  };
  Term terms[kWinogradWindow];
  int count = 0;
};

// The rows of B^T: `even` + `odd` and `even` - `odd` of each pair, then the first and the last row; and those
// of A^T, of the pairs' sums (for even rows) or differences (for odd ones) at 0 and 1, the first element at 2
// and the last at 3: along columns, whose elements are in memory, and along rows.
struct WinogradMaps {
  WinogradSum even[kWinogradPairs], odd[kWinogradPairs], ends[2];
  WinogradSum along_columns[kWinogradTile], along_rows[kWinogradTile];
};

// B^T d B of 16 channels: v[element * v_stride + lane] from d[row][column][lane], of which only rows and
// columns from `first` to `last` lie in the input.
struct WinogradInput {
  const float* d = nullptr;
  int first_row = 0, last_row = 0, first_column = 0, last_column = 0;
  float* v = nullptr;
  int64_t v_stride = 0;
};

// out[row][column][lane] = A^T M A of 16 output channels, M[element] the sums over channels of
// v[element * v_stride + channel] * u[element][channel][lane].
struct WinogradProduct {
  const float* v = nullptr;
  int64_t v_stride = 0;
  const float* u = nullptr;
  int64_t channels = 0;
  float* out = nullptr;
};

TILESMITH_DECLARE_ISA(void TransformWinogradInput(const WinogradMaps& maps, const WinogradInput& input))
TILESMITH_DECLARE_ISA(void MultiplyWinogradTile(const WinogradMaps& maps, const WinogradProduct& product))

}  // namespace tilesmith
