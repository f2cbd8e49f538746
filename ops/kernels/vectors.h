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

// out[i] = function(tag, in[i]), for functions so long that they are compiled once: the end of the run goes
// through a buffer of a whole vector, its other lanes being 1.
template <typename Function>
HWY_INLINE void MapRun(const float* in, float* out, int64_t count, const Function& function) {
  const FloatTag d;
  int64_t i = 0;
  for (; i + kFloatLanes <= count; i += kFloatLanes)
    hn::StoreU(function(d, hn::LoadU(d, in + i)), d, out + i);
  if (i == count) return;
  HWY_ALIGN float buffer[kFloatLanes];
  for (int64_t lane = 0; lane < kFloatLanes; ++lane) buffer[lane] = i + lane < count ? in[i + lane] : 1.0f;
  hn::Store(function(d, hn::Load(d, buffer)), d, buffer);
  for (int64_t lane = 0; i + lane < count; ++lane) out[i + lane] = buffer[lane];
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

// e^x to about 2 ulp, x clamped to where the result is a normal float (Cephes' polynomial). Highway's Exp, of
// the same accuracy, goes on to denormal results and takes 1.8 times as long (AVX2).
template <class D, typename V>
HWY_INLINE V FastExp(D d, V x) {
  const hn::RebindToSigned<D> di;
  x = Smaller(Larger(x, hn::Set(d, -87.0f)), hn::Set(d, 88.0f));
  // Adding 1.5 * 2^23 rounds to an integer, which then sits in the low mantissa bits.
  const V round = hn::Set(d, 12582912.0f);
  const V rounded = hn::MulAdd(x, hn::Set(d, 1.44269504f), round);
  const V n = hn::Sub(rounded, round);
  const V r = hn::MulAdd(n, hn::Set(d, 2.12194440e-4f), hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x));
  constexpr float kSeries[] = {5.0000001201e-1f, 1.6666665459e-1f, 4.1665795894e-2f,
                               8.3334519073e-3f, 1.3981999507e-3f, 1.9875691500e-4f};
  const V p = hn::MulAdd(hn::Mul(Polynomial(d, r, kSeries), r), r, hn::Add(r, hn::Set(d, 1.0f)));
  const auto power = hn::Add(hn::ShiftLeft<23>(hn::BitCast(di, rounded)), hn::Set(di, 127 << 23));
  return hn::Mul(p, hn::BitCast(d, power));
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
  const V far = hn::Sub(one, hn::Div(two, hn::Add(FastExp(d, hn::Mul(x, two)), one)));
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
  if constexpr (kKind == ActivationKind::kSigmoid) return hn::Div(one, hn::Add(one, FastExp(d, hn::Neg(x))));
  if constexpr (kKind == ActivationKind::kTanh) return FastTanh(d, x);
  // Exp is clamped, so the numerator must be: the result is below 1e-35 either way.
  if constexpr (kKind == ActivationKind::kSilu) {
    return hn::Div(Larger(x, hn::Set(d, -88.0f)), hn::Add(one, FastExp(d, hn::Neg(x))));
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
