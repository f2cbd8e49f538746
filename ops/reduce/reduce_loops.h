// Inner loops of reductions and of what normalizes by their results, one build per instruction set.
#pragma once

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

// What is taken from each element x, less a shift, and how that is taken together.
enum class ReduceStep { kSum, kSumAbs, kSumSquare, kSumExp, kProduct, kMax, kMin };

// Floats of one ReduceRun, and rows of one ReduceRows at most: the caller adds up their results in double, so
// that errors do not grow with the size of a tensor.
constexpr int64_t kReduceRun = 4096;
constexpr int64_t kReduceRows = 128;

// Over `count` floats; a NaN is passed over by kMax and kMin. Element i goes to lane i % 64 of sums of
// floats. Of these, in doubles, l (j) + l (j + 8) for each sixteen, then the four sixteens, then eight lanes
// by halves; what is no sum is joined by halves.
TILESMITH_DECLARE_ISA(double ReduceRun(ReduceStep step, const float* in, int64_t count, float shift))

// What `count` floats, less a center, and the squares of that sum up to. Of each 256 floats element i goes to
// lane i % 32 of sums of floats, which are added up in doubles, so that any count is right to some roundings.
// Squares above a float's range become infinite.
struct Moments {
  double sum, squares;
};
TILESMITH_DECLARE_ISA(Moments MomentsOf(const float* in, int64_t count, float center))

// totals[i] = what ReduceRun has over column i, for `rows` rows of `columns` floats.
struct ReduceRowsArgs {
  const float* in;
  int64_t row_stride;
  int64_t rows, columns;
  const float* shifts;  // one for each column; null: 0
  float* totals;
};
TILESMITH_DECLARE_ISA(void ReduceRows(ReduceStep step, const ReduceRowsArgs& args))

// out[i] = (in[i] - center) * factor + rest, and that times scale[i] plus shift[i] unless they are null.
// `out` may be `in`.
struct NormalizeRunArgs {
  const float* in;
  float* out;
  int64_t count;
  float center, factor, rest;
  const float* scale;
  const float* shift;
};
TILESMITH_DECLARE_ISA(void NormalizeRun(const NormalizeRunArgs& args))

}  // namespace tilesmith
