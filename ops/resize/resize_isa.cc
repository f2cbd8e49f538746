#include "ops/kernels/vectors.h"
#include "ops/resize/resize_loops.h"

HWY_BEFORE_NAMESPACE();
namespace tilesmith::TILESMITH_ISA {
namespace {

HWY_INLINE void RepeatPlain(const ResizeRow& row) {
  const int64_t inputs = row.output_width / row.repeat;
  if (row.repeat == 2) {
    for (int64_t i = 0; i < inputs; ++i) row.output[2 * i] = row.output[2 * i + 1] = row.low[i];
    return;
  }
  for (int64_t i = 0; i < inputs; ++i) {
    for (int64_t r = 0; r < row.repeat; ++r) row.output[i * row.repeat + r] = row.low[i];
  }
}

// Each input pixel is loaded once and stored `repeat` times.
HWY_INLINE void RepeatPixels(const ResizeRow& row) {
  const int64_t inputs = row.output_width / row.repeat;
  for (int64_t i = 0; i < inputs; ++i) {
    const float* in = row.low + i * row.lanes;
    float* out = row.output + i * row.repeat * row.lanes;
    ForEachVector(row.lanes, [&](auto d, int64_t lane) {
      const auto value = hn::LoadU(d, in + lane);
      for (int64_t r = 0; r < row.repeat; ++r) hn::StoreU(value, d, out + r * row.lanes + lane);
    });
  }
}

HWY_INLINE void GatherPixels(const ResizeRow& row) {
  for (int64_t x = 0; x < row.output_width; ++x) {
    const float* in = row.low + row.columns[x].low * row.lanes;
    float* out = row.output + x * row.lanes;
    ForEachVector(row.lanes,
                  [&](auto d, int64_t lane) { hn::StoreU(hn::LoadU(d, in + lane), d, out + lane); });
  }
}

// A weight of 0 leaves `high` out altogether, which may be infinite.
template <class D, typename V>
HWY_INLINE V Between(D d, V low, V high, float weight) {
  if (weight == 0) return low;
  return hn::MulAdd(low, hn::Set(d, 1 - weight), hn::Mul(high, hn::Set(d, weight)));
}

}  // namespace

void NearestRow(const ResizeRow& row) {
  if (row.repeat == 0) {
    GatherPixels(row);
  } else if (row.lanes == 1) {
    RepeatPlain(row);
  } else {
    RepeatPixels(row);
  }
}

void LinearRow(const ResizeRow& row) {
  for (int64_t x = 0; x < row.output_width; ++x) {
    const ResizeTap& tap = row.columns[x];
    const int64_t left = tap.low * row.lanes, right = tap.high * row.lanes;
    float* out = row.output + x * row.lanes;
    ForEachVector(row.lanes, [&](auto d, int64_t lane) {
      const float* low = row.low + lane;
      const float* high = row.high + lane;
      const auto top = Between(d, hn::LoadU(d, low + left), hn::LoadU(d, low + right), tap.weight);
      const auto bottom = Between(d, hn::LoadU(d, high + left), hn::LoadU(d, high + right), tap.weight);
      hn::StoreU(Between(d, top, bottom, row.weight), d, out + lane);
    });
  }
}

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
