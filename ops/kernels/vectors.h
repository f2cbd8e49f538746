// Vectors of floats on Highway: loops and elementary functions, for *_isa.cc files only, which put what they
// define between HWY_BEFORE_NAMESPACE() and HWY_AFTER_NAMESPACE(). Highway's choice of instruction sets at
// run time is not used: CMake compiles the files once for each (layouts/base/isa_dispatch.h).
//
// Vectors have as many lanes as their tag says, whose type is a template parameter wherever a loop's end may
// need fewer of them than a register has.
#pragma once

#include <hwy/highway.h>

#include "layouts/base/simd.h"
#include "ops/base/activation.h"
#include "ops/base/elementary.h"

HWY_BEFORE_NAMESPACE();
namespace tilesmith::TILESMITH_ISA {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using FloatVector = hn::VFromD<FloatTag>;
constexpr int64_t kFloatLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));
constexpr float kLowest = -__builtin_inff();

// Calls body(tag, i) over [0, count): whole vectors first, then narrower ones.
template <typename Body>
HWY_INLINE void ForEachVector(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + kFloatLanes <= count; i += kFloatLanes) body(FloatTag(), i);
  if constexpr (kFloatLanes > 8) {
    if (i + 8 <= count) {
      body(hn::CappedTag<float, 8>(), i);
      i += 8;
    }
  }
  if constexpr (kFloatLanes > 4) {
    if (i + 4 <= count) {
      body(hn::CappedTag<float, 4>(), i);
      i += 4;
    }
  }
  for (; i < count; ++i) body(hn::CappedTag<float, 1>(), i);
}

// Floats in memory are float, or bf16, which is seen as uint16_t: loops that are templates of what they load
// and store serve both. Rounding is that of Bf16Bits (layouts/data_type.h), except that AVX-512 BF16 takes
// numbers below 2^-126 for zero.
template <class D>
HWY_INLINE hn::VFromD<D> LoadFloats(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::VFromD<D> LoadFloats(D d, const uint16_t* from) {
  const auto bits = hn::LoadU(hn::Rebind<uint16_t, D>(), from);
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(D()) == 16) {  // one permutation instead of two steps
    HWY_ALIGN static constexpr uint16_t kUpperHalves[32] = {
        0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15};
    const __m512i places = _mm512_load_si512(kUpperHalves);
    const __m512i wide = _mm512_maskz_permutexvar_epi16(0xAAAAAAAA, places, _mm512_castsi256_si512(bits.raw));
    return hn::VFromD<D>{_mm512_castsi512_ps(wide)};
  }
#endif
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), bits)));
}
template <class D>
HWY_INLINE void StoreFloats(hn::VFromD<D> value, D d, float* to) {
  hn::StoreU(value, d, to);
}
template <class D>
HWY_INLINE void StoreFloats(hn::VFromD<D> value, D, uint16_t* to) {
  const hn::Rebind<uint16_t, D> narrow;
#ifdef TILESMITH_ISA_avx512_bf16
  using Narrow = hn::VFromD<decltype(narrow)>;
  if constexpr (hn::MaxLanes(D()) == 16) {
    hn::StoreU(Narrow{reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value.raw))}, narrow, to);
  } else if constexpr (hn::MaxLanes(D()) == 8) {
    hn::StoreU(Narrow{reinterpret_cast<__m128i>(_mm256_cvtneps_pbh(value.raw))}, narrow, to);
  } else {
    hn::StoreU(Narrow{reinterpret_cast<__m128i>(_mm_cvtneps_pbh(value.raw))}, narrow, to);
  }
#else
  const hn::RebindToUnsigned<D> wide;
  const auto bits = hn::BitCast(wide, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(wide, 0x7fff)), odd);
  const auto quiet = hn::Or(bits, hn::Set(wide, 0x400000));
  const auto is_number = hn::RebindMask(wide, hn::Eq(value, value));
  const auto stored = hn::ShiftRight<16>(hn::IfThenElse(is_number, rounded, quiet));
  hn::StoreU(hn::TruncateTo(narrow, stored), narrow, to);
#endif
}

// One of them.
HWY_INLINE float LoadOne(const float* from) { return *from; }
HWY_INLINE float LoadOne(const uint16_t* from) {
  const hn::CappedTag<float, 1> d;
  return hn::GetLane(LoadFloats(d, from));
}
HWY_INLINE void StoreOne(float value, float* to) { *to = value; }
HWY_INLINE void StoreOne(float value, uint16_t* to) {
  const hn::CappedTag<float, 1> d;
  StoreFloats(hn::Set(d, value), d, to);
}

#if HWY_TARGET == HWY_AVX2
// Of the first `count` lanes.
HWY_INLINE __m256i MaskOfFirst(int64_t count) {
  HWY_ALIGN static constexpr int32_t kMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMasks + 8 - count));
}
#endif

// A vector whose first `count` lanes come from memory, the others being `other`, of bf16 rounded; and back.
// Nothing behind them is touched. Precondition: 0 < count <= kFloatLanes.
HWY_INLINE FloatVector LoadFirst(FloatTag d, const float* from, int64_t count, float other) {
#if HWY_TARGET == HWY_AVX3
  const auto mask = static_cast<__mmask16>((1U << count) - 1);
  return FloatVector{_mm512_mask_loadu_ps(hn::Set(d, other).raw, mask, from)};
#elif HWY_TARGET == HWY_AVX2
  const __m256i mask = MaskOfFirst(count);
  const __m256 values = _mm256_maskload_ps(from, mask);
  return FloatVector{_mm256_blendv_ps(hn::Set(d, other).raw, values, _mm256_castsi256_ps(mask))};
#else
  HWY_ALIGN float buffer[kFloatLanes];
  for (int64_t lane = 0; lane < kFloatLanes; ++lane) buffer[lane] = lane < count ? from[lane] : other;
  return hn::Load(d, buffer);
#endif
}
HWY_INLINE void StoreFirst([[maybe_unused]] FloatTag d, FloatVector value, float* to, int64_t count) {
#if HWY_TARGET == HWY_AVX3
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << count) - 1), value.raw);
#elif HWY_TARGET == HWY_AVX2
  _mm256_maskstore_ps(to, MaskOfFirst(count), value.raw);
#else
  HWY_ALIGN float buffer[kFloatLanes];
  hn::Store(value, d, buffer);
  for (int64_t lane = 0; lane < count; ++lane) to[lane] = buffer[lane];
#endif
}
HWY_INLINE FloatVector LoadFirst(FloatTag d, const uint16_t* from, int64_t count, float other) {
  HWY_ALIGN uint16_t buffer[kFloatLanes];
  StoreFloats(hn::Set(d, other), d, buffer);
  for (int64_t lane = 0; lane < count; ++lane) buffer[lane] = from[lane];
  return LoadFloats(d, buffer);
}
HWY_INLINE void StoreFirst(FloatTag d, FloatVector value, uint16_t* to, int64_t count) {
  HWY_ALIGN uint16_t buffer[kFloatLanes];
  StoreFloats(value, d, buffer);
  for (int64_t lane = 0; lane < count; ++lane) to[lane] = buffer[lane];
}

// out[i] = function(tag, in[i]), for functions so long that they are compiled once: the end of the run is a
// vector whose other lanes are 1.
template <typename T, typename Function>
HWY_INLINE void MapRun(const T* in, T* out, int64_t count, const Function& function) {
  const FloatTag d;
  int64_t i = 0;
  for (; i + kFloatLanes <= count; i += kFloatLanes)
    StoreFloats(function(d, LoadFloats(d, in + i)), d, out + i);
  if (i == count) return;
  StoreFirst(d, function(d, LoadFirst(d, in + i, count - i, 1.0f)), out + i, count - i);
}

// As std::max and std::min: a NaN in `a` stays, one in `b` is passed over. x86's own instructions do that for
// operands in the other order.
template <typename V>
HWY_INLINE V Larger(V a, V b) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::Max(b, a);
#else
  return hn::IfThenElse(hn::Lt(a, b), b, a);
#endif
}
template <typename V>
HWY_INLINE V Smaller(V a, V b) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::Min(b, a);
#else
  return hn::IfThenElse(hn::Lt(b, a), b, a);
#endif
}

// What is added up, or joined otherwise, along a vector is so in sixteen lanes, whatever a register has: lane
// j takes elements j, j + 16, ... These are the registers that the lanes take.
constexpr int kSixteenParts = static_cast<int>(16 / kFloatLanes);
struct Sixteen {
  FloatVector part[kSixteenParts];
};
HWY_INLINE Sixteen SetSixteen(float value) {
  Sixteen v;
  for (FloatVector& part : v.part) part = hn::Set(FloatTag(), value);
  return v;
}
// all[j] = join(all[j], in[j]) for `count` lanes, and join(all[j], other) for the rest.
template <typename In, typename Join>
HWY_INLINE void JoinSixteen(Sixteen& all, const In* in, const Join& join) {
  const FloatTag d;
  for (int p = 0; p < kSixteenParts; ++p)
    all.part[p] = join(all.part[p], LoadFloats(d, in + p * kFloatLanes));
}
template <typename In, typename Join>
HWY_INLINE void JoinFirst(Sixteen& all, const In* in, int64_t count, float other, const Join& join) {
  const FloatTag d;
  for (int p = 0; p < kSixteenParts; ++p, count -= kFloatLanes) {
    const FloatVector values = count >= kFloatLanes ? LoadFloats(d, in + p * kFloatLanes)
                               : count > 0          ? LoadFirst(d, in + p * kFloatLanes, count, other)
                                                    : hn::Set(d, other);
    all.part[p] = join(all.part[p], values);
  }
}
// The same for any count of elements. `other` is what changes no lane.
template <typename In, typename Join>
HWY_INLINE void JoinAll(Sixteen& all, const In* in, int64_t count, float other, const Join& join) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) JoinSixteen(all, in + i, join);
  if (i < count) JoinFirst(all, in + i, count - i, other, join);
}
// Lanes are joined with those eight behind them, these with those four behind, and so on.
template <class D, typename Join>
HWY_INLINE float JoinedHalves([[maybe_unused]] D d, hn::VFromD<D> v, [[maybe_unused]] const Join& join) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
#if HWY_TARGET != HWY_SCALAR
    const hn::Half<D> half;
    return JoinedHalves(half, join(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), join);
#endif
  }
}
template <typename Join>
HWY_INLINE float JoinedLanes(Sixteen v, const Join& join) {
  for (int half = kSixteenParts / 2; half > 0; half /= 2)
    for (int p = 0; p < half; ++p) v.part[p] = join(v.part[p], v.part[p + half]);
  return JoinedHalves(FloatTag(), v.part[0], join);
}
struct AddLanes {
  template <typename V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};
HWY_INLINE float SumOfSixteen(const Sixteen& v) { return JoinedLanes(v, AddLanes()); }

// value, but x where x is not a number.
template <typename V>
HWY_INLINE V KeepNan(V x, V value) {
  return hn::IfThenElse(hn::Eq(x, x), value, x);
}

// a * b + c and c - a * b as MultiplyAdd has them (layouts/base/simd.h).
template <typename V>
HWY_INLINE V FusedMulAdd(V a, V b, V c) {
#ifdef TILESMITH_FUSED
  return V{MultiplyAdd(a.raw, b.raw, c.raw)};
#else
  return hn::MulAdd(a, b, c);
#endif
}
template <typename V>
HWY_INLINE V FusedNegMulAdd(V a, V b, V c) {
#ifdef TILESMITH_FUSED
  return FusedMulAdd(hn::Neg(a), b, c);
#else
  return hn::NegMulAdd(a, b, c);
#endif
}

// c[0] + c[1] x + c[2] x^2 + ...
template <class D, typename V, size_t kCount>
HWY_INLINE V Polynomial(D d, V x, const float (&c)[kCount]) {
  V sum = hn::Set(d, c[kCount - 1]);
  for (size_t i = kCount - 1; i-- > 0;) sum = FusedMulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// 2^(bits % 8 / 8)
template <class D>
HWY_INLINE hn::VFromD<D> EighthsOfTwo(D d, hn::VFromD<hn::RebindToSigned<D>> bits) {
  HWY_ALIGN static constexpr float kEighths[16] = {
      1.0f, 1.09050773f, 1.18920712f, 1.29683955f, 1.41421356f, 1.54221083f, 1.68179283f, 1.83400809f,
      1.0f, 1.09050773f, 1.18920712f, 1.29683955f, 1.41421356f, 1.54221083f, 1.68179283f, 1.83400809f};
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(d) == 16)
    return hn::VFromD<D>{_mm512_permutexvar_ps(bits.raw, _mm512_load_ps(kEighths))};
#endif
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(d) == 8) {
    return hn::VFromD<D>{_mm256_permutevar8x32_ps(_mm256_load_ps(kEighths), bits.raw)};
  } else if constexpr (hn::MaxLanes(d) < 8) {
    const __m256i wide = _mm256_castsi128_si256(bits.raw);
    return hn::VFromD<D>{_mm256_castps256_ps128(_mm256_permutevar8x32_ps(_mm256_load_ps(kEighths), wide))};
  }
#else
  const hn::RebindToSigned<D> di;
  HWY_ALIGN int32_t places[hn::MaxLanes(d)];
  HWY_ALIGN float values[hn::MaxLanes(d)];
  hn::Store(hn::And(bits, hn::Set(di, 7)), di, places);
  for (size_t lane = 0; lane < hn::MaxLanes(d); ++lane) values[lane] = kEighths[places[lane]];
  return hn::Load(d, values);
#endif
}

// e^x to 1.2 ulp for -87 <= x <= 88: 2^(n / 8) e^r with n = round(8 x / log 2), so that few terms of the
// series are left: r + c r^2 + r^3 / 6, where c, a little above 1 / 2, stands for the next.
template <class D, typename V>
HWY_INLINE V ExpInRange(D d, V x) {
  const hn::RebindToSigned<D> di;
  // Adding 1.5 * 2^20 rounds to eighths, whose count then sits in the low mantissa bits.
  const V round = hn::Set(d, 1572864.0f);
  const V rounded = FusedMulAdd(x, hn::Set(d, 1.44269504f), round), n = hn::Sub(rounded, round);
  // log 2 in two parts, of which the first has so few bits that its products are exact.
  const V r = FusedMulAdd(n, hn::Set(d, 2.12194440e-4f), FusedNegMulAdd(n, hn::Set(d, 0.693359375f), x));
  const V series = FusedMulAdd(r, hn::Set(d, 1.0f / 6), hn::Set(d, 0.5000648f));
  const auto bits = hn::BitCast(di, rounded);
  const V root = EighthsOfTwo(d, bits);
  const V p = FusedMulAdd(root, FusedMulAdd(hn::Mul(r, r), series, r), root);
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::ShiftRight<3>(bits))));
}

// The same for all x, clamped to where the result is a normal float; a NaN stays.
template <class D, typename V>
HWY_INLINE V FastExp(D d, V x) {
  return ExpInRange(d, Smaller(Larger(x, hn::Set(d, -87.0f)), hn::Set(d, 88.0f)));
}

// e^x for all floats but where it would be denormal: 0 and infinity where it is. The square of e^(x/2), which
// neither is clamped where e^x is a float nor hides that it is none.
template <class D, typename V>
HWY_INLINE V FullExp(D d, V x) {
  const V root = FastExp(d, hn::Mul(x, hn::Set(d, 0.5f)));
  return KeepNan(x, hn::Mul(root, root));
}

// To about 2 ulp.
template <class D, typename V>
HWY_INLINE V FastTanh(D d, V x) {
  constexpr float kSeries[] = {-3.33332819422e-1f, 1.33314422036e-1f, -5.37397155531e-2f, 2.06390887954e-2f,
                               -5.70498872745e-3f};
  const V one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f), z = hn::Mul(x, x);
  const V near = FusedMulAdd(hn::Mul(Polynomial(d, z, kSeries), z), x, x);
  const V power = FastExp(d, Smaller(hn::Mul(x, two), hn::Set(d, 87.0f)));
  const V far = FusedNegMulAdd(two, hn::Div(one, hn::Add(power, one)), one);
  return hn::IfThenElse(hn::Lt(z, hn::Set(d, 0.390625f)), near, far);
}

// The two sides of the error function, both to a few ulp: erf(x) / x for |x| <= 1 as a function of z = x^2,
// and 1 - erf(x) for x >= 0.7, as e to a polynomial; 0 from 4.2 on. Least-squares fits, weighted until the
// largest relative errors are alike: 1.2e-9 and 4.6e-8.
template <class D, typename V>
HWY_INLINE V ErfRatio(D d, V z) {
  constexpr float kSeries[] = {1.1283791065f,    -0.3761262596f,     0.1128358543f,   -0.0268538110f,
                               0.0051883277483f, -0.00080101925415f, 0.0000785385782f};
  return Polynomial(d, z, kSeries);
}
template <class D, typename V>
HWY_INLINE V ErfComplement(D d, V x) {
  constexpr float kLog[] = {-0.00023717465f, 1.1298853f,       0.63243848f,
                            0.10948917f,     -0.026078533f,    0.00463707978f,
                            -0.00057034689f, 0.0000428947278f, -0.00000147644039f};
  const V value = FastExp(d, hn::Neg(Polynomial(d, x, kLog)));
  return hn::IfThenZeroElse(hn::Gt(x, hn::Set(d, 4.2f)), value);
}

// (1 - erf(x / sqrt(2))) / 2 for x >= 0, as ErfComplement; 0 from 5.95 on. The fit is to 6e-8.
template <class D, typename V>
HWY_INLINE V NormalTail(D d, V x) {
  constexpr float kLog[] = {-0.693147123f,    -0.797886431f,   -0.31829527f,     -0.0363788456f,
                            0.00484494073f,   -1.05053732e-5f, -0.00019767863f,  5.78531799e-5f,
                            -9.47855642e-06f, 9.61099204e-07f, -5.63163098e-08f, 1.46200674e-09f};
  const V end = hn::Set(d, 5.95f), value = ExpInRange(d, Polynomial(d, hn::Min(x, end), kLog));
  return hn::IfThenZeroElse(hn::Ge(x, end), value);
}

template <class D, typename V>
HWY_INLINE V Erf(D d, V x) {
  const V size = hn::Abs(x);
  const V far = hn::CopySign(hn::Sub(hn::Set(d, 1.0f), ErfComplement(d, size)), x);
  const V near = hn::Mul(x, ErfRatio(d, hn::Mul(x, x)));
  return KeepNan(x, hn::IfThenElse(hn::Lt(size, hn::Set(d, 1.0f)), near, far));
}

// The logarithm of a positive number, to 1 ulp: of 2^e m with m in [sqrt(1/2), sqrt(2)), by artanh's series.
template <class D, typename V>
HWY_INLINE V LogOfPositive(D d, V x) {
  const hn::RebindToSigned<D> di;
  constexpr float kSeries[] = {0.66666662693f, 0.40000972152f, 0.28498786688f, 0.24279078841f};
  constexpr int32_t kRoot = 0x3f3504f3;  // sqrt(1/2)
  const V one = hn::Set(d, 1.0f);
  const auto is_denormal = hn::Lt(x, hn::Set(d, 0x1p-126f));
  const auto bits = hn::BitCast(di, hn::IfThenElse(is_denormal, hn::Mul(x, hn::Set(d, 0x1p23f)), x));
  const auto e = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, kRoot)));
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(e))), f = hn::Sub(m, one);
  const V exponent = hn::Sub(hn::ConvertTo(d, e), hn::IfThenElseZero(is_denormal, hn::Set(d, 23.0f)));
  const V s = hn::Div(f, hn::Add(f, hn::Set(d, 2.0f))), z = hn::Mul(s, s);
  const V half_square = hn::Mul(hn::Mul(hn::Set(d, 0.5f), f), f);
  const V rest = hn::Mul(s, FusedMulAdd(z, Polynomial(d, z, kSeries), half_square));
  const V low = FusedMulAdd(exponent, hn::Set(d, 9.0580006145e-06f), rest);
  return FusedMulAdd(exponent, hn::Set(d, 6.9313812256e-01f), hn::Sub(f, hn::Sub(half_square, low)));
}

template <class D, typename V>
HWY_INLINE V FullLog(D d, V x) {
  V value = LogOfPositive(d, x);
  value = hn::IfThenElse(hn::Eq(x, hn::Set(d, __builtin_inff())), x, value);
  value = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, kLowest), value);
  value = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, __builtin_nanf("")), value);
  return KeepNan(x, value);
}

HWY_INLINE float LogOfOne(float x) {
  const hn::CappedTag<float, 1> d;
  return hn::GetLane(FullLog(d, hn::Set(d, x)));
}

// log(1 + x) for 0 <= x <= 1, to 2 ulp: what 1 + x is rounded by is made good.
template <class D, typename V>
HWY_INLINE V LogOfMore(D d, V x) {
  const V one = hn::Set(d, 1.0f), sum = hn::Add(one, x);
  return hn::Add(LogOfPositive(d, sum), hn::Div(hn::Sub(x, hn::Sub(sum, one)), sum));
}

// e^x - 1, also next to 0, to 2 ulp: 2^n (e^r - 1) + (2^n - 1).
template <class D, typename V>
HWY_INLINE V FullExpm1(D d, V x) {
  constexpr float kSeries[] = {5.0000001201e-1f, 1.6666665459e-1f, 4.1665795894e-2f,
                               8.3334519073e-3f, 1.3981999507e-3f, 1.9875691500e-4f};
  const hn::RebindToSigned<D> di;
  const V most = hn::Set(d, 18.0f), inside = Smaller(Larger(x, hn::Set(d, -30.0f)), most);
  const V round = hn::Set(d, 12582912.0f);  // 1.5 * 2^23
  const V rounded = FusedMulAdd(inside, hn::Set(d, 1.44269504f), round), n = hn::Sub(rounded, round);
  const V r = FusedMulAdd(n, hn::Set(d, 2.12194440e-4f), FusedNegMulAdd(n, hn::Set(d, 0.693359375f), inside));
  const V rest = FusedMulAdd(hn::Mul(Polynomial(d, r, kSeries), r), r, r);
  const V power =
      hn::BitCast(d, hn::Add(hn::ShiftLeft<23>(hn::BitCast(di, rounded)), hn::Set(di, 127 << 23)));
  const V value = FusedMulAdd(power, rest, hn::Sub(power, hn::Set(d, 1.0f)));
  return KeepNan(x, hn::IfThenElse(hn::Lt(x, most), value, FullExp(d, x)));
}

// Sine, or cosine, to 2 ulp of the larger of the two up to 39000; beyond as elementary::Sin has it, each lane
// for itself.
template <bool kCosine, class D, typename V>
HWY_INLINE V SineOf(D d, V x) {
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
  constexpr float kLargest = 39000;
  const hn::RebindToSigned<D> di;
  constexpr float kSine[] = {-1.6666654611e-1f, 8.3321608736e-3f, -1.9515295891e-4f};
  constexpr float kCosineSeries[] = {4.166664568298827e-2f, -1.388731625493765e-3f, 2.443315711809948e-5f};
  const V round = hn::Set(d, 12582912.0f);  // 1.5 * 2^23
  const V rounded = FusedMulAdd(x, hn::Set(d, 0.636619772f), round), n = hn::Sub(rounded, round);
  // pi / 2 in parts of few bits, so that products with n are exact.
  V r = FusedNegMulAdd(n, hn::Set(d, 1.5703125f), x);
  r = FusedNegMulAdd(n, hn::Set(d, 4.8351287841796875e-4f), r);
  r = FusedNegMulAdd(n, hn::Set(d, 3.13855707645416259765e-7f), r);
  r = FusedNegMulAdd(n, hn::Set(d, 6.077100627767103e-11f), r);
  const V z = hn::Mul(r, r);
  const V sine = FusedMulAdd(hn::Mul(z, r), Polynomial(d, z, kSine), r);
  const V cosine = FusedMulAdd(hn::Mul(z, z), Polynomial(d, z, kCosineSeries),
                               FusedMulAdd(z, hn::Set(d, -0.5f), hn::Set(d, 1.0f)));
  const auto quarters = hn::Add(hn::BitCast(di, rounded), hn::Set(di, kCosine ? 1 : 0));
  const auto is_odd = hn::RebindMask(d, hn::Eq(hn::And(quarters, hn::Set(di, 1)), hn::Set(di, 1)));
  const auto sign = hn::BitCast(d, hn::ShiftLeft<30>(hn::And(quarters, hn::Set(di, 2))));
  const V value = hn::Xor(hn::IfThenElse(is_odd, cosine, sine), sign);
  if (hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, kLargest)))) return value;
  HWY_ALIGN float arguments[kLanes];
  HWY_ALIGN float values[kLanes];
  hn::Store(x, d, arguments);
  hn::Store(value, d, values);
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const double argument = arguments[lane];
    if (__builtin_fabs(argument) <= kLargest) continue;
    values[lane] = static_cast<float>(kCosine ? elementary::Cos(argument) : elementary::Sin(argument));
  }
  return hn::Load(d, values);
}

// To 2 ulp: x, (x - 1) / (x + 1) or -1 / x is below tan(pi / 8).
template <class D, typename V>
HWY_INLINE V ArcTangent(D d, V x) {
  constexpr float kSeries[] = {-3.33329491539e-1f, 1.99777106478e-1f, -1.38776856032e-1f, 8.05374449538e-2f};
  const V one = hn::Set(d, 1.0f), a = hn::Abs(x);
  const auto is_large = hn::Gt(a, hn::Set(d, 2.41421356f)), is_middle = hn::Gt(a, hn::Set(d, 0.414213562f));
  const V above = hn::IfThenElse(is_large, hn::Neg(one), hn::IfThenElse(is_middle, hn::Sub(a, one), a));
  const V below = hn::IfThenElse(is_large, a, hn::IfThenElse(is_middle, hn::Add(a, one), one));
  const V from = hn::IfThenElse(is_large, hn::Set(d, 1.57079633f),
                                hn::IfThenElseZero(is_middle, hn::Set(d, 0.785398163f)));
  const V t = hn::Div(above, below), z = hn::Mul(t, t);
  const V angle = hn::Add(from, FusedMulAdd(hn::Mul(Polynomial(d, z, kSeries), z), t, t));
  return KeepNan(x, hn::CopySign(angle, x));
}

template <ActivationKind kKind, class D, typename V>
HWY_INLINE V Activate(D d, V x, float alpha, float beta) {
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  if constexpr (kKind == ActivationKind::kRelu) return Larger(x, zero);
  if constexpr (kKind == ActivationKind::kClip) {
    return Smaller(Larger(x, hn::Set(d, alpha)), hn::Set(d, beta));
  }
  if constexpr (kKind == ActivationKind::kLeakyRelu) {
    return hn::IfThenElse(hn::Ge(x, zero), x, hn::Mul(x, hn::Set(d, alpha)));
  }
  if constexpr (kKind == ActivationKind::kHardSigmoid) {
    return Smaller(Larger(FusedMulAdd(x, hn::Set(d, alpha), hn::Set(d, beta)), zero), one);
  }
  if constexpr (kKind == ActivationKind::kHardSwish) {
    const V gate = hn::Add(hn::Div(x, hn::Set(d, 6.0f)), hn::Set(d, 0.5f));
    return hn::Mul(x, Smaller(Larger(gate, zero), one));
  }
  if constexpr (kKind == ActivationKind::kSigmoid) {
    const V power = ExpInRange(d, hn::Neg(Smaller(Larger(x, hn::Set(d, -87.0f)), hn::Set(d, 87.0f))));
    return hn::Div(one, hn::Add(one, power));
  }
  if constexpr (kKind == ActivationKind::kTanh) return FastTanh(d, x);
  // The power is clamped, so the numerator must be: the result is below 1e-35 either way.
  if constexpr (kKind == ActivationKind::kSilu) {
    const V numerator = Larger(x, hn::Set(d, -87.0f));
    const V power = ExpInRange(d, hn::Neg(Smaller(numerator, hn::Set(d, 87.0f))));
    return hn::Mul(numerator, hn::Div(one, hn::Add(one, power)));
  }
  return x;
}

// Calls body.template operator()<kind>().
template <typename Body>
HWY_INLINE void WithActivation(ActivationKind kind, const Body& body) {
  switch (kind) {
    case ActivationKind::kNone:
      return body.template operator()<ActivationKind::kNone>();
    case ActivationKind::kRelu:
      return body.template operator()<ActivationKind::kRelu>();
    case ActivationKind::kClip:
      return body.template operator()<ActivationKind::kClip>();
    case ActivationKind::kLeakyRelu:
      return body.template operator()<ActivationKind::kLeakyRelu>();
    case ActivationKind::kHardSigmoid:
      return body.template operator()<ActivationKind::kHardSigmoid>();
    case ActivationKind::kHardSwish:
      return body.template operator()<ActivationKind::kHardSwish>();
    case ActivationKind::kSigmoid:
      return body.template operator()<ActivationKind::kSigmoid>();
    case ActivationKind::kTanh:
      return body.template operator()<ActivationKind::kTanh>();
    case ActivationKind::kSilu:
      return body.template operator()<ActivationKind::kSilu>();
  }
}

}  // namespace
}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
