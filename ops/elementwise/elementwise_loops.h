// Inner loops of the elementwise kernels, one build per instruction set. `out` may be an input's own memory.
#pragma once

#include "layouts/base/isa_dispatch.h"
#include "layouts/base/kernel.h"
#include "ops/base/activation.h"
#include "ops/elementwise/kinds.h"

namespace tilesmith {

// `pixels` pixels of `lanes` adjacent channels, with one or two parameters for each lane.
struct LaneLoop {
  const float* in;
  float* out;
  const float* a;
  const float* b;
  int64_t lanes;
  int64_t pixels;
};

// Two operands and their result as rows and columns; strides in floats, between rows and between columns.
struct BinaryLoop {
  const float* a;
  const float* b;
  float* out;
  int64_t rows, columns;
  int64_t a_row, b_row, out_row;
  int64_t a_column, b_column, out_column;
};

// out = act(in)
TILESMITH_DECLARE_ISA(void ActivateRun(const float* in, float* out, int64_t count, Activation activation))
// out = function(in), by vectors; HasVectorFunction says of which there are any.
TILESMITH_DECLARE_ISA(void FunctionRun(const float* in, float* out, int64_t count, Function function))
// out = act(a[lane] * in + b[lane])
TILESMITH_DECLARE_ISA(void ScaleShiftLanes(const LaneLoop& loop, Activation activation))
// out = in >= 0 ? in : a[lane] * in
TILESMITH_DECLARE_ISA(void PReluLanes(const LaneLoop& loop))
// out = a op b
TILESMITH_DECLARE_ISA(void BinaryRows(BinaryKind op, const BinaryLoop& loop))
// out = sum over the inputs, added in their order; floats [offset, offset + count) of one image
TILESMITH_DECLARE_ISA(void SumRun(const InputView* inputs, int64_t input_count, int64_t image, int64_t offset,
                                  float* out, int64_t count))

}  // namespace tilesmith
