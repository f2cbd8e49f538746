#include "ops/kernels/vectors.h"
#include "ops/quantize/byte_loops.h"

HWY_BEFORE_NAMESPACE();
namespace tilesmith::TILESMITH_ISA {
namespace {

template <class D, typename Byte>
HWY_INLINE hn::VFromD<D> LoadCentered(D d, const Byte* in, int32_t zero) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<Byte, D> db;
  return hn::ConvertTo(d, hn::Sub(hn::PromoteTo(di, hn::LoadU(db, in)), hn::Set(di, zero)));
}
template <class D>
HWY_INLINE hn::VFromD<D> LoadCentered(D d, const float* in, int32_t) {
  return hn::LoadU(d, in);
}

template <class D, typename Byte>
HWY_INLINE hn::VFromD<D> LoadReal(D d, const Byte* in, int32_t zero, float scale) {
  return hn::Mul(LoadCentered(d, in, zero), hn::Set(d, scale));
}

// Adding 1.5 * 2^23 rounds to an integer, ties to even, which then sits in the low mantissa bits.
constexpr float kRound = 12582912.0f;
constexpr int32_t kRoundBits = 0x4b400000;

// `shifted` are steps plus kRound.
template <class D, typename Byte>
HWY_INLINE void StoreSteps(D, hn::VFromD<D> shifted, int32_t zero, Byte* out) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> du;
  const auto stored = hn::Add(hn::BitCast(di, shifted), hn::Set(di, zero - kRoundBits));
  hn::StoreU(hn::TruncateTo(du, hn::BitCast(hn::RebindToUnsigned<D>(), stored)), du,
             reinterpret_cast<uint8_t*>(out));
}

// Whether it and its reciprocal are normal numbers, with room for some factors.
constexpr bool IsNormal(float value) { return value > 1e-30f && value < 1e30f; }

// Rounded steps plus kRound. `near` is a product for what is a quotient, exact(): it rounds like that unless
// it lies between two integers; of at most 255 steps it is off by six roundings at most, 9.1e-5.
template <class D, typename V, typename Exact>
HWY_INLINE V RoundSteps(D d, V near, V low, V high, bool is_near, const Exact& exact) {
  constexpr float kProductError = 1e-4f;
  const V round = hn::Set(d, kRound);
  V steps = Smaller(Larger(low, near), high);
  V shifted = hn::Add(steps, round);
  const V from_integer = hn::Abs(hn::Sub(steps, hn::Sub(shifted, round)));
  if (HWY_UNLIKELY(!is_near || !hn::AllTrue(d, hn::Lt(from_integer, hn::Set(d, 0.5f - kProductError))))) {
    steps = Smaller(Larger(low, exact()), high);
    shifted = hn::Add(steps, round);
  }
  return shifted;
}

template <bool kAdd, typename Byte>
HWY_INLINE void CombineBytes(const Byte* a, const Byte* b, Byte* out, int64_t count,
                             const ByteBinary& terms) {
  const ByteBinary t = terms;
  const float inverse = 1 / t.scale;
  const bool near = IsNormal(t.scale);
  ForEachVector(count, [&](auto d, int64_t i) {
    const auto left = LoadReal(d, a + i, t.a_zero, t.a_scale),
               right = LoadReal(d, b + i, t.b_zero, t.b_scale);
    auto real = left;
    if constexpr (kAdd) {
      real = hn::Add(left, right);
    } else {
      real = hn::Mul(left, right);
    }
    const auto low = hn::Set(d, static_cast<float>(t.low - t.zero));
    const auto high = hn::Set(d, static_cast<float>(t.high - t.zero));
    const auto shifted = RoundSteps(d, hn::Mul(real, hn::Set(d, inverse)), low, high, near,
                                    [&] { return hn::Div(real, hn::Set(d, t.scale)); });
    StoreSteps(d, shifted, t.zero, out + i);
  });
}

template <typename In, typename Byte>
HWY_INLINE void ScaleShift(const In* in, Byte* out, int64_t pixels, int64_t channels, int64_t lanes,
                           const ByteScaleShift& terms) {
  const ByteScaleShift t = terms;
  const auto compute = [&](auto d, auto factor, auto term, int64_t at) {
    const auto steps = hn::Add(hn::Mul(LoadCentered(d, in + at, t.in_zero), factor), term);
    const auto low = hn::Set(d, static_cast<float>(t.low - t.zero));
    const auto high = hn::Set(d, static_cast<float>(t.high - t.zero));
    StoreSteps(d, hn::Add(Smaller(Larger(low, steps), high), hn::Set(d, kRound)), t.zero, out + at);
  };
  if (lanes == 1) {
    ForEachVector(pixels,
                  [&](auto d, int64_t i) { compute(d, hn::Set(d, *t.factor), hn::Set(d, *t.term), i); });
    return;
  }
  ForEachVector(channels, [&](auto d, int64_t c) {
    const auto factor = hn::LoadU(d, t.factor + c), term = hn::LoadU(d, t.term + c);
    for (int64_t pixel = 0; pixel < pixels; ++pixel) compute(d, factor, term, pixel * lanes + c);
  });
}

// What is at the taps, added up in 16 bits: take(sums) once for each 128 taps, and for the rest.
template <class D, typename Byte, typename Take>
HWY_INLINE void SumTaps(D narrow, const Byte* in, const TapGrid& taps, const Take& take) {
  constexpr int64_t kMost = 128;  // of 255 each
  const hn::Rebind<Byte, D> db;
  auto sums = hn::Zero(narrow);
  const auto add_row = [&](const Byte*& tap, int64_t count) {
    for (int64_t i = 0; i < count; ++i, tap += taps.column_step)
      sums = hn::Add(sums, hn::PromoteTo(narrow, hn::LoadU(db, tap)));
  };
  if (taps.rows <= kMost && taps.columns <= kMost / (taps.rows > 0 ? taps.rows : 1)) {
    for (int64_t row = 0; row < taps.rows; ++row) {
      const Byte* tap = in + row * taps.row_step;
      if (taps.columns == 3)
        add_row(tap, 3);
      else
        add_row(tap, taps.columns);
    }
    take(sums);
    return;
  }
  int64_t held = 0;
  for (int64_t row = 0; row < taps.rows; ++row) {
    const Byte* tap = in + row * taps.row_step;
    for (int64_t left = taps.columns; left > 0;) {
      if (held == kMost) {
        take(sums);
        sums = hn::Zero(narrow);
        held = 0;
      }
      const int64_t more = left < kMost - held ? left : kMost - held;
      add_row(tap, more);
      held += more;
      left -= more;
    }
  }
  take(sums);
}

}  // namespace

template <typename Byte>
void AddBytes(const Byte* a, const Byte* b, Byte* out, int64_t count, const ByteBinary& terms) {
  CombineBytes<true>(a, b, out, count, terms);
}

template <typename Byte>
void MultiplyBytes(const Byte* a, const Byte* b, Byte* out, int64_t count, const ByteBinary& terms) {
  CombineBytes<false>(a, b, out, count, terms);
}

template <typename Byte>
void MaximizeBytes(const Byte* in, Byte* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = in[i] > out[i] ? in[i] : out[i];
}

template <typename Byte>
void LargestOfTaps(const Byte* in, const TapGrid& taps, Byte* out, int64_t count) {
  int64_t i = 0;
  const auto maximize = [&](auto d) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= count; i += lanes) {
      auto largest = hn::Set(d, hwy::LowestValue<Byte>());
      for (int64_t row = 0; row < taps.rows; ++row) {
        const Byte* from = in + row * taps.row_step + i;
        for (int64_t column = 0; column < taps.columns; ++column, from += taps.column_step)
          largest = hn::Max(largest, hn::LoadU(d, from));
      }
      hn::StoreU(largest, d, out + i);
    }
  };
  maximize(hn::ScalableTag<Byte>());
  maximize(hn::CappedTag<Byte, 16>());
  maximize(hn::CappedTag<Byte, 1>());
}

template <typename Byte>
void MeanOfTaps(const Byte* in, const TapGrid& taps, Byte* out, int64_t count, const MeanTerms& terms) {
  const MeanTerms t = terms;
  const float factor = t.scale / t.divisor / t.out_scale;
  const bool near = t.scale < 1e28f && IsNormal(t.scale / t.divisor) && IsNormal(factor);
  const auto finish = [&](auto d, auto sums, int64_t i) {
    const auto real = hn::ConvertTo(d, sums);
    const auto low = hn::Set(d, static_cast<float>(t.low - t.zero));
    const auto high = hn::Set(d, static_cast<float>(t.high - t.zero));
    const auto shifted = RoundSteps(d, hn::Mul(real, hn::Set(d, factor)), low, high, near, [&] {
      const auto mean = hn::Div(hn::Mul(real, hn::Set(d, t.scale)), hn::Set(d, t.divisor));
      return hn::Div(mean, hn::Set(d, t.out_scale));
    });
    StoreSteps(d, shifted, t.zero, out + i);
  };
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR  // whole vectors of 16 bits
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const hn::CappedTag<int16_t, 2 * kFloatLanes> narrow;
  const hn::Half<decltype(narrow)> half;
  for (; i + 2 * kFloatLanes <= count; i += 2 * kFloatLanes) {
    auto lower = hn::Set(di, t.start), upper = lower;
    SumTaps(narrow, in + i, taps, [&](auto sums) {
      lower = hn::Add(lower, hn::PromoteTo(di, hn::LowerHalf(half, sums)));
      upper = hn::Add(upper, hn::PromoteTo(di, hn::UpperHalf(half, sums)));
    });
    finish(d, lower, i);
    finish(d, upper, i + kFloatLanes);
  }
#endif
  ForEachVector(count - i, [&](auto part, int64_t at) {
    const hn::RebindToSigned<decltype(part)> wide;
    auto total = hn::Set(wide, t.start);
    SumTaps(hn::Rebind<int16_t, decltype(part)>(), in + i + at, taps,
            [&](auto sums) { total = hn::Add(total, hn::PromoteTo(wide, sums)); });
    finish(part, total, i + at);
  });
}

template <typename Byte>
void ScaleShiftBytes(const Byte* in, Byte* out, int64_t pixels, int64_t channels, int64_t lanes,
                     const ByteScaleShift& terms) {
  ScaleShift(in, out, pixels, channels, lanes, terms);
}

template <typename Byte>
void ScaleShiftFloats(const float* in, Byte* out, int64_t pixels, int64_t channels, int64_t lanes,
                      const ByteScaleShift& terms) {
  ScaleShift(in, out, pixels, channels, lanes, terms);
}

template void AddBytes(const uint8_t*, const uint8_t*, uint8_t*, int64_t, const ByteBinary&);
template void AddBytes(const int8_t*, const int8_t*, int8_t*, int64_t, const ByteBinary&);
template void MultiplyBytes(const uint8_t*, const uint8_t*, uint8_t*, int64_t, const ByteBinary&);
template void MultiplyBytes(const int8_t*, const int8_t*, int8_t*, int64_t, const ByteBinary&);
template void MaximizeBytes(const uint8_t*, uint8_t*, int64_t);
template void MaximizeBytes(const int8_t*, int8_t*, int64_t);
template void LargestOfTaps(const uint8_t*, const TapGrid&, uint8_t*, int64_t);
template void LargestOfTaps(const int8_t*, const TapGrid&, int8_t*, int64_t);
template void MeanOfTaps(const uint8_t*, const TapGrid&, uint8_t*, int64_t, const MeanTerms&);
template void MeanOfTaps(const int8_t*, const TapGrid&, int8_t*, int64_t, const MeanTerms&);
template void ScaleShiftBytes(const uint8_t*, uint8_t*, int64_t, int64_t, int64_t, const ByteScaleShift&);
template void ScaleShiftBytes(const int8_t*, int8_t*, int64_t, int64_t, int64_t, const ByteScaleShift&);
template void ScaleShiftFloats(const float*, uint8_t*, int64_t, int64_t, int64_t, const ByteScaleShift&);
template void ScaleShiftFloats(const float*, int8_t*, int64_t, int64_t, int64_t, const ByteScaleShift&);

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
