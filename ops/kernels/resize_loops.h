// Inner loops of Resize, one build per instruction set.
#pragma once

#include "layouts/base/isa_dispatch.h"
#include "ops/nodes/resize_tap.h"

namespace tilesmith {

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
