// Inner loops of pooling, one build per instruction set.
#pragma once

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

// The taps of an output column that lie inside the input: [first, last).
struct TapRange {
  int64_t first, last;
};

// One output row of one block. `input` points at the first input row that has a tap.
struct PoolRow {
  const float* input;
  float* output;
  int64_t lanes;
  int64_t input_width, output_width;
  int64_t row_floats;  // between the input rows of neighbouring taps
  int64_t rows;        // taps inside the input
  int64_t stride, dilation, left;
  int64_t taps;                  // of a row, as far as any column has them inside the input
  const TapRange* columns;       // one per output column
  const float* column_divisors;  // one per output column, multiplied by row_divisor
  float row_divisor;
};

TILESMITH_DECLARE_ISA(void MaxPoolRow(const PoolRow& row))
TILESMITH_DECLARE_ISA(void AveragePoolRow(const PoolRow& row))
// out[l] = max or mean over `pixels` of in[pixel * stride + l], for l < lanes; where stride is 1, of rows of
// `width`, and then over the rows. Types are float, or bf16 seen as uint16_t, whose sums are of floats and
// rounded once.
TILESMITH_DECLARE_ISA(template <typename In, typename Out> void GlobalMaxLanes(const In* in, Out* out,
                                                                               int64_t lanes, int64_t stride,
                                                                               int64_t pixels, int64_t width))
TILESMITH_DECLARE_ISA(template <typename In, typename Out>
                      void GlobalAverageLanes(const In* in, Out* out, int64_t lanes, int64_t stride,
                                              int64_t pixels, int64_t width))

}  // namespace tilesmith
