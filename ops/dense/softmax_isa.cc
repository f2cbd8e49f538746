#include "ops/dense/softmax_loops.h"
#include "ops/kernels/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace tilesmith::TILESMITH_ISA {
namespace {

// The end of a row that is no whole number of vectors is one that ends with what changes neither the largest
// nor the sum.
HWY_INLINE float LargestOf(const float* in, int64_t count) {
  const FloatTag d;
  FloatVector largest = hn::Set(d, in[0]);
  int64_t i = 0;
  for (; i + kFloatLanes <= count; i += kFloatLanes) largest = Larger(largest, hn::LoadU(d, in + i));
  if (i < count) largest = Larger(largest, LoadFirst(d, in + i, count - i, kLowest));
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// The sum of e^(in - top); kStore: out is those powers.
template <bool kStore>
HWY_INLINE float SumOfPowers(const float* in, float* out, int64_t count, float top) {
  const FloatTag d;
  const FloatVector tops = hn::Set(d, top);
  FloatVector sums = hn::Zero(d);
  int64_t i = 0;
  for (; i + kFloatLanes <= count; i += kFloatLanes) {
    const FloatVector power = FastExp(d, hn::Sub(hn::LoadU(d, in + i), tops));
    sums = hn::Add(sums, power);
    if constexpr (kStore) hn::StoreU(power, d, out + i);
  }
  if (i < count) {
    const FloatVector power = FastExp(d, hn::Sub(LoadFirst(d, in + i, count - i, kLowest), tops));
    sums = hn::Add(sums, power);
    if constexpr (kStore) StoreFirst(d, power, out + i, count - i);
  }
  return hn::GetLane(hn::SumOfLanes(d, sums));
}

// A row of one vector.
HWY_INLINE void ShortRow(const float* in, float* out, int64_t count) {
  const FloatTag d;
  const FloatVector x = LoadFirst(d, in, count, kLowest);
  const FloatVector power = FastExp(d, hn::Sub(x, hn::MaxOfLanes(d, x)));
  const float factor = 1 / hn::GetLane(hn::SumOfLanes(d, power));
  StoreFirst(d, hn::Mul(power, hn::Set(d, factor)), out, count);
}

}  // namespace

void SoftmaxRow(const float* in, float* out, int64_t count, bool logarithm) {
  if (count <= kFloatLanes && !logarithm) return ShortRow(in, out, count);
  const float top = LargestOf(in, count);
  if (logarithm) {
    const float log_sum = __builtin_logf(SumOfPowers<false>(in, out, count, top));
    ForEachVector(count, [&](auto d, int64_t i) {
      hn::StoreU(hn::Sub(hn::Sub(hn::LoadU(d, in + i), hn::Set(d, top)), hn::Set(d, log_sum)), d, out + i);
    });
    return;
  }
  const float factor = 1 / SumOfPowers<true>(in, out, count, top);
  ForEachVector(count, [&](auto d, int64_t i) {
    hn::StoreU(hn::Mul(hn::LoadU(d, out + i), hn::Set(d, factor)), d, out + i);
  });
}

void SoftmaxColumns(const SoftmaxTile& tile, bool logarithm) {
  HWY_ALIGN float largest[kSoftmaxColumns];
  HWY_ALIGN float sums[kSoftmaxColumns];
  for (int64_t i = 0; i < tile.columns; ++i) {
    largest[i] = tile.in[i];
    sums[i] = 0;
  }
  for (int64_t row = 1; row < tile.count; ++row) {
    const float* in = tile.in + row * tile.in_step;
    ForEachVector(tile.columns, [&](auto d, int64_t i) {
      hn::StoreU(Larger(hn::LoadU(d, largest + i), hn::LoadU(d, in + i)), d, largest + i);
    });
  }
  for (int64_t row = 0; row < tile.count; ++row) {
    const float* in = tile.in + row * tile.in_step;
    float* out = tile.out + row * tile.out_step;
    ForEachVector(tile.columns, [&](auto d, int64_t i) {
      const auto below = hn::Sub(hn::LoadU(d, in + i), hn::LoadU(d, largest + i)), power = FastExp(d, below);
      hn::StoreU(hn::Add(hn::LoadU(d, sums + i), power), d, sums + i);
      hn::StoreU(logarithm ? below : power, d, out + i);
    });
  }
  for (int64_t i = 0; i < tile.columns; ++i) sums[i] = logarithm ? __builtin_logf(sums[i]) : 1 / sums[i];
  for (int64_t row = 0; row < tile.count; ++row) {
    float* out = tile.out + row * tile.out_step;
    ForEachVector(tile.columns, [&](auto d, int64_t i) {
      const auto value = hn::LoadU(d, out + i), factor = hn::LoadU(d, sums + i);
      hn::StoreU(logarithm ? hn::Sub(value, factor) : hn::Mul(value, factor), d, out + i);
    });
  }
}

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
