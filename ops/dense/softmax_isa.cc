#include "ops/dense/softmax_loops.h"
#include "ops/kernels/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace tilesmith::TILESMITH_ISA {
namespace {

HWY_INLINE float LargestOf(const float* in, int64_t count) {
  const auto larger = [](auto a, auto b) { return Larger(a, b); };
  Sixteen largest = SetSixteen(in[0]);
  JoinAll(largest, in, count, kLowest, larger);
  return JoinedLanes(largest, larger);
}

// The sum of e^(in - top); kStore: out is those powers. Lanes behind the end add e^-87, which no sum of at
// least 1 sees.
template <bool kStore>
HWY_INLINE float SumOfPowers(const float* in, float* out, int64_t count, float top) {
  const FloatTag d;
  const FloatVector tops = hn::Set(d, top);
  Sixteen sums = SetSixteen(0);
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    for (int p = 0; p < kSixteenParts; ++p) {
      const FloatVector power = FastExp(d, hn::Sub(hn::LoadU(d, in + i + p * kFloatLanes), tops));
      sums.part[p] = hn::Add(sums.part[p], power);
      if constexpr (kStore) hn::StoreU(power, d, out + i + p * kFloatLanes);
    }
  }
  for (int p = 0; i < count; ++p, i += kFloatLanes) {
    const int64_t left = count - i < kFloatLanes ? count - i : kFloatLanes;
    const FloatVector power = FastExp(d, hn::Sub(LoadFirst(d, in + i, left, kLowest), tops));
    sums.part[p] = hn::Add(sums.part[p], power);
    if constexpr (kStore) StoreFirst(d, power, out + i, left);
  }
  return SumOfSixteen(sums);
}

}  // namespace

void SoftmaxRow(const float* in, float* out, int64_t count, bool logarithm) {
  const float top = LargestOf(in, count);
  if (logarithm) {
    const float log_sum = LogOfOne(SumOfPowers<false>(in, out, count, top));
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
  for (int64_t i = 0; i < tile.columns; ++i) sums[i] = logarithm ? LogOfOne(sums[i]) : 1 / sums[i];
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
