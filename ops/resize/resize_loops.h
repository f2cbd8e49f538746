// Inner loops of Resize, one build per instruction set. T is what tensors hold: float, or bf16 seen as
// uint16_t, which is computed with in float and rounded once.
#pragma once

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

// What one output position of a Resize reads along one axis:
// out = (1 - weight) * in[low] + weight * in[high]
struct ResizeTap {
  int64_t low = 0, high = 0;
  float weight = 0;  // in [0, 1]; 0 where only `low` counts
};

// One output row of one block.
template <typename T>
struct ResizeRow {
  const T* low;  // the input rows of this row's tap, and its weight
  const T* high;
  float weight;
  T* output;
  int64_t lanes;
  int64_t output_width;
  const ResizeTap* columns;  // one per output column
  int64_t repeat;            // column x reads x / repeat, exactly; 0 where that is not so
};

TILESMITH_DECLARE_STORED(template <typename T> void NearestRow(const ResizeRow<T>& row))
TILESMITH_DECLARE_STORED(template <typename T> void LinearRow(const ResizeRow<T>& row))

}  // namespace tilesmith
