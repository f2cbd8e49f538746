// Inner loops of Resize, one build per instruction set.
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
struct ResizeRow {
  const float* low;  // the input rows of this row's tap, and its weight
  const float* high;
  float weight;
  float* output;
  int64_t lanes;
  int64_t output_width;
  const ResizeTap* columns;  // one per output column
  int64_t repeat;            // column x reads x / repeat, exactly; 0 where that is not so
};

TILESMITH_DECLARE_ISA(void NearestRow(const ResizeRow& row))
TILESMITH_DECLARE_ISA(void LinearRow(const ResizeRow& row))

}  // namespace tilesmith
