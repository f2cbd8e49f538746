#include "ops/kernels/vectors.h"
#include "ops/resize/resize_loops.h"

HWY_BEFORE_NAMESPACE();
namespace tilesmith::TILESMITH_ISA {
namespace {

template <typename T>
HWY_INLINE void RepeatPlain(const ResizeRow<T>& row) {
  const int64_t inputs = row.output_width / row.repeat;
  if (row.repeat == 2) {
    for (int64_t i = 0; i < inputs; ++i) row.output[2 * i] = row.output[2 * i + 1] = row.low[i];
    return;
  }
  for (int64_t i = 0; i < inputs; ++i) {
    for (int64_t r = 0; r < row.repeat; ++r) row.output[i * row.repeat + r] = row.low[i];
  }
}

// Elements that are only moved, in vectors of as many as there are floats in those of `d`.
template <class D, typename T>
using Moved = hn::Rebind<T, D>;

// Each input pixel is loaded once and stored `repeat` times.
template <typename T>
HWY_INLINE void RepeatPixels(const ResizeRow<T>& row) {
  const int64_t inputs = row.output_width / row.repeat;
  for (int64_t i = 0; i < inputs; ++i) {
    const T* in = row.low + i * row.lanes;
    T* out = row.output + i * row.repeat * row.lanes;
    ForEachVector(row.lanes, [&](auto floats, int64_t lane) {
      const Moved<decltype(floats), T> d;
      const auto value = hn::LoadU(d, in + lane);
      for (int64_t r = 0; r < row.repeat; ++r) hn::StoreU(value, d, out + r * row.lanes + lane);
    });
  }
}

template <typename T>
HWY_INLINE void GatherPixels(const ResizeRow<T>& row) {
  for (int64_t x = 0; x < row.output_width; ++x) {
    const T* in = row.low + row.columns[x].low * row.lanes;
    T* out = row.output + x * row.lanes;
    ForEachVector(row.lanes, [&](auto floats, int64_t lane) {
      const Moved<decltype(floats), T> d;
      hn::StoreU(hn::LoadU(d, in + lane), d, out + lane);
    });
  }
}

// A weight of 0 leaves `high` out altogether, which may be infinite.
template <class D, typename V>
HWY_INLINE V Between(D d, V low, V high, float weight) {
  if (weight == 0) return low;
  return FusedMulAdd(low, hn::Set(d, 1 - weight), hn::Mul(high, hn::Set(d, weight)));
}

}  // namespace

template <typename T>
void NearestRow(const ResizeRow<T>& row) {
  if (row.repeat == 0) {
    GatherPixels(row);
  } else if (row.lanes == 1) {
    RepeatPlain(row);
  } else {
    RepeatPixels(row);
  }
}

template <typename T>
void LinearRow(const ResizeRow<T>& row) {
  for (int64_t x = 0; x < row.output_width; ++x) {
    const ResizeTap& tap = row.columns[x];
    const int64_t left = tap.low * row.lanes, right = tap.high * row.lanes;
    T* out = row.output + x * row.lanes;
    ForEachVector(row.lanes, [&](auto d, int64_t lane) {
      const T* low = row.low + lane;
      const T* high = row.high + lane;
      const auto top = Between(d, LoadFloats(d, low + left), LoadFloats(d, low + right), tap.weight);
      const auto bottom = Between(d, LoadFloats(d, high + left), LoadFloats(d, high + right), tap.weight);
      StoreFloats(Between(d, top, bottom, row.weight), d, out + lane);
    });
  }
}

#define TILESMITH_ROWS_OF(T)                     \
  template void NearestRow(const ResizeRow<T>&); \
  template void LinearRow(const ResizeRow<T>&);
TILESMITH_INSTANTIATE_STORED(TILESMITH_ROWS_OF)
#undef TILESMITH_ROWS_OF

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
