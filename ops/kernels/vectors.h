// Vectors of floats on Highway: loops and elementary functions, for *_isa.cc files only, which put what they
// define between HWY_BEFORE_NAMESPACE() and HWY_AFTER_NAMESPACE(). Highway's choice of instruction sets at
// run time is not used: CMake compiles the files once for each (layouts/base/isa_dispatch.h).
//
// Vectors have as many lanes as their tag says, whose type is a template parameter wherever a loop's end may
// need fewer of them than a register has.
#pragma once

#include <hwy/highway.h>
// After it.
#include <hwy/contrib/math/math-inl.h>

#include "ops/base/activation.h"

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

// A vector whose first `count` lanes come from memory, the others being `other`, of bf16 rounded; and back.
// Nothing behind them is touched. Precondition: 0 < count <= kFloatLanes.
HWY_INLINE FloatVector LoadFirst(FloatTag d, const float* from, int64_t count, float other) {
#if HWY_TARGET == HWY_AVX3
  const auto mask = static_cast<__mmask16>((1U << count) - 1);
  return FloatVector{_mm512_mask_loadu_ps(hn::Set(d, other).raw, mask, from)};
#else
  HWY_ALIGN float buffer[kFloatLanes];
  for (int64_t lane = 0; lane < kFloatLanes; ++lane) buffer[lane] = lane < count ? from[lane] : other;
  return hn::Load(d, buffer);
#endif
}
HWY_INLINE void StoreFirst([[maybe_unused]] FloatTag d, FloatVector value, float* to, int64_t count) {
#if HWY_TARGET == HWY_AVX3
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << count) - 1), value.raw);
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

// value, but x where x is not a number.
template <typename V>
HWY_INLINE V KeepNan(V x, V value) {
  return hn::IfThenElse(hn::Eq(x, x), value, x);
}

// c[0] + c[1] x + c[2] x^2 + ...
template <class D, typename V, size_t kCount>
HWY_INLINE V Polynomial(D d, V x, const float (&c)[kCount]) {
  V sum = hn::Set(d, c[kCount - 1]);
  for (size_t i = kCount - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// e^x to about 2 ulp for -87 <= x <= 88 (Cephes' polynomial).
template <class D, typename V>
HWY_INLINE V ExpInRange(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V log2e = hn::Set(d, 1.44269504f), low_ln2 = hn::Set(d, 2.12194440e-4f);
  const V high_ln2 = hn::Set(d, 0.693359375f);
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(D()) == 16) {
    // e^x = 2^(n / 16) e^r: the table has the sixteenths, so that few terms of the series are left. Adding
    // 1.5 * 2^19 rounds to sixteenths, whose count then sits in the low mantissa bits.
    HWY_ALIGN static constexpr float kSixteenths[16] = {1.0f,        1.04427378f, 1.09050773f, 1.13878863f,
                                                        1.18920712f, 1.24185781f, 1.29683955f, 1.35425555f,
                                                        1.41421356f, 1.47682615f, 1.54221083f, 1.61049033f,
                                                        1.68179283f, 1.75625216f, 1.83400809f, 1.91520656f};
    const V round = hn::Set(d, 786432.0f);
    const V rounded = hn::MulAdd(x, log2e, round);
    const V n = hn::Sub(rounded, round);
    const V r = hn::MulAdd(n, low_ln2, hn::NegMulAdd(n, high_ln2, x));
    const V series = hn::MulAdd(r, hn::Set(d, 1.0f / 6), hn::Set(d, 0.5f));
    const V root = V{_mm512_permutexvar_ps(hn::BitCast(di, rounded).raw, hn::Load(d, kSixteenths).raw)};
    const V p = hn::MulAdd(root, hn::MulAdd(hn::Mul(r, r), series, r), root);
    const auto power = hn::ShiftLeft<23>(hn::ShiftRight<4>(hn::BitCast(di, rounded)));
    return hn::BitCast(d, hn::Add(hn::BitCast(di, p), power));
  }
#endif
  // Adding 1.5 * 2^23 rounds to an integer, which then sits in the low mantissa bits.
  const V round = hn::Set(d, 12582912.0f);
  const V rounded = hn::MulAdd(x, log2e, round);
  const V n = hn::Sub(rounded, round);
  const V r = hn::MulAdd(n, low_ln2, hn::NegMulAdd(n, high_ln2, x));
  constexpr float kSeries[] = {5.0000001201e-1f, 1.6666665459e-1f, 4.1665795894e-2f,
                               8.3334519073e-3f, 1.3981999507e-3f, 1.9875691500e-4f};
  const V p = hn::MulAdd(hn::Mul(Polynomial(d, r, kSeries), r), r, hn::Add(r, hn::Set(d, 1.0f)));
  const auto power = hn::Add(hn::ShiftLeft<23>(hn::BitCast(di, rounded)), hn::Set(di, 127 << 23));
  return hn::Mul(p, hn::BitCast(d, power));
}

// The same for all x, clamped to where the result is a normal float; a NaN stays. Highway's Exp, of the same
// accuracy, goes on to denormal results and takes 1.8 times as long (AVX2).
template <class D, typename V>
HWY_INLINE V FastExp(D d, V x) {
  return ExpInRange(d, Smaller(Larger(x, hn::Set(d, -87.0f)), hn::Set(d, 88.0f)));
}

// 1 / x for 1 <= x <= 2^126, to about 1 ulp.
template <class D, typename V>
HWY_INLINE V Inverse(D d, V x) {
  const V one = hn::Set(d, 1.0f);
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(D()) == 16) {  // a division takes twice as long as Newton's step
    const V near = V{_mm512_rcp14_ps(x.raw)};
    return hn::MulAdd(near, hn::NegMulAdd(near, x, one), near);
  }
#endif
  return hn::Div(one, x);
}

// e^x for all floats but where it would be denormal: 0 and infinity where it is. The square of e^(x/2), which
// neither is clamped where e^x is a float nor hides that it is none.
template <class D, typename V>
HWY_INLINE V FullExp(D d, V x) {
  const V root = FastExp(d, hn::Mul(x, hn::Set(d, 0.5f)));
  return KeepNan(x, hn::Mul(root, root));
}

// To about 2 ulp; Highway's Tanh takes 1.35 times as long.
template <class D, typename V>
HWY_INLINE V FastTanh(D d, V x) {
  constexpr float kSeries[] = {-3.33332819422e-1f, 1.33314422036e-1f, -5.37397155531e-2f, 2.06390887954e-2f,
                               -5.70498872745e-3f};
  const V one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f), z = hn::Mul(x, x);
  const V near = hn::MulAdd(hn::Mul(Polynomial(d, z, kSeries), z), x, x);
  const V power = FastExp(d, Smaller(hn::Mul(x, two), hn::Set(d, 87.0f)));
  const V far = hn::NegMulAdd(two, Inverse(d, hn::Add(power, one)), one);
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
    return Smaller(Larger(hn::MulAdd(x, hn::Set(d, alpha), hn::Set(d, beta)), zero), one);
  }
  if constexpr (kKind == ActivationKind::kHardSwish) {
    const V gate = hn::Add(hn::Div(x, hn::Set(d, 6.0f)), hn::Set(d, 0.5f));
    return hn::Mul(x, Smaller(Larger(gate, zero), one));
  }
  if constexpr (kKind == ActivationKind::kSigmoid) {
    const V power = ExpInRange(d, hn::Neg(Smaller(Larger(x, hn::Set(d, -87.0f)), hn::Set(d, 87.0f))));
    return Inverse(d, hn::Add(one, power));
  }
  if constexpr (kKind == ActivationKind::kTanh) return FastTanh(d, x);
  // The power is clamped, so the numerator must be: the result is below 1e-35 either way.
  if constexpr (kKind == ActivationKind::kSilu) {
    const V numerator = Larger(x, hn::Set(d, -87.0f));
    const V power = ExpInRange(d, hn::Neg(Smaller(numerator, hn::Set(d, 87.0f))));
    return hn::Mul(numerator, Inverse(d, hn::Add(one, power)));
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
