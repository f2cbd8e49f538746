// Inner loops of the elementwise kernels, one build per instruction set. `out` may be an input's own memory.
//
// T is what tensors hold: float, or bf16 seen as uint16_t, which is widened, computed with in float and
// rounded once (StoreFloats in ops/kernels/vectors.h). Parameters are float either way.
#pragma once

#include "layouts/base/isa_dispatch.h"
#include "layouts/base/kernel.h"
#include "ops/base/activation.h"
#include "ops/elementwise/kinds.h"

namespace tilesmith {

// `pixels` pixels of `lanes` adjacent channels, with one or two parameters for each lane.
template <typename T>
struct LaneLoop {
  const T* in;
  T* out;
  const float* a;
  const float* b;
  int64_t lanes;
  int64_t pixels;
};

// Two operands and their result as rows and columns; strides in elements, between rows and between columns.
template <typename T>
struct BinaryLoop {
  const T* a;
  const T* b;
  T* out;
  int64_t rows, columns;
  int64_t a_row, b_row, out_row;
  int64_t a_column, b_column, out_column;
};

// out = act(in)
TILESMITH_DECLARE_STORED(template <typename T>
                         void ActivateRun(const T* in, T* out, int64_t count, Activation activation))
// out = function(in), by vectors; HasVectorFunction says of which there are any.
TILESMITH_DECLARE_STORED(template <typename T>
                         void FunctionRun(const T* in, T* out, int64_t count, Function function))
// out = act(a[lane] * in + b[lane])
TILESMITH_DECLARE_STORED(template <typename T>
                         void ScaleShiftLanes(const LaneLoop<T>& loop, Activation activation))
// out = in >= 0 ? in : a[lane] * in
TILESMITH_DECLARE_STORED(template <typename T> void PReluLanes(const LaneLoop<T>& loop))
// out = a op b
TILESMITH_DECLARE_STORED(template <typename T> void BinaryRows(BinaryKind op, const BinaryLoop<T>& loop))
// out = sum over the inputs, added in their order; elements [offset, offset + count) of one image
TILESMITH_DECLARE_STORED(template <typename T> void SumRun(const InputView* inputs, int64_t input_count,
                                                           int64_t image, int64_t offset, T* out,
                                                           int64_t count))

}  // namespace tilesmith
