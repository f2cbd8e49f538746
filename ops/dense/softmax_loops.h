// Inner loops of softmax, one build per instruction set. `out` may be `in`.
#pragma once

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

// Columns of one SoftmaxColumns call at most.
constexpr int64_t kSoftmaxColumns = 256;

// `count` rows of `columns` floats, the steps being from one row to the next.
struct SoftmaxTile {
  const float* in;
  float* out;
  int64_t count, columns;
  int64_t in_step, out_step;
};

// out = exp(in - max(in)) / sum(exp(in - max(in))) over `count` floats, or its logarithm. Precondition: count
// > 0.
TILESMITH_DECLARE_ISA(void SoftmaxRow(const float* in, float* out, int64_t count, bool logarithm))
// The same for each column. Precondition: count > 0.
TILESMITH_DECLARE_ISA(void SoftmaxColumns(const SoftmaxTile& tile, bool logarithm))

}  // namespace tilesmith
