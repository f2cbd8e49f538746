// Loops and elementary functions over vectors of floats (layouts/base/simd.h), for *_isa.cc files only.
#pragma once

#include "layouts/base/simd.h"
#include "ops/base/activation.h"

namespace tilesmith::TILESMITH_ISA {
namespace {

// Calls body.template operator()<kLanes>(i) over [0, count): whole vectors first, then narrower ones.
template <typename Body>
inline void ForEachVector(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) body.template operator()<kWidth>(i);
  if constexpr (kWidth > 8) {
    if (i + 8 <= count) {
      body.template operator()<8>(i);
      i += 8;
    }
  }
  if constexpr (kWidth > 4) {
    if (i + 4 <= count) {
      body.template operator()<4>(i);
      i += 4;
    }
  }
  for (; i < count; ++i) body.template operator()<1>(i);
}

// e^x to about 2 ulp, x clamped to where the result is a normal float (Cephes' polynomial).
template <int kLanes>
inline Vector<kLanes> Exp(Vector<kLanes> x) {
  using V = Vector<kLanes>;
  using Ints = typename VectorOf<kLanes>::Ints;
  x = Min<V>(Max<V>(x, Splat<kLanes>(-87.0f)), Splat<kLanes>(88.0f));
  // Adding 1.5 * 2^23 rounds to an integer, which then sits in the low mantissa bits.
  constexpr float kRound = 12582912.0f;
  const V rounded = x * 1.44269504f + kRound;
  const V n = rounded - kRound;
  const V r = x - n * 0.693359375f + n * 2.12194440e-4f;
  V p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Ints power = (__builtin_bit_cast(Ints, rounded) << 23) + (127 << 23);
  return p * __builtin_bit_cast(V, power);
}

template <int kLanes>
inline Vector<kLanes> Tanh(Vector<kLanes> x) {
  using V = Vector<kLanes>;
  const V z = x * x;
  V p = z * -5.70498872745e-3f + 2.06390887954e-2f;
  p = p * z + -5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z + -3.33332819422e-1f;
  const V near = p * z * x + x;
  const V far = 1.0f - 2.0f / (Exp<kLanes>(x * 2.0f) + 1.0f);
  return z < 0.390625f ? near : far;
}

template <ActivationKind kKind, int kLanes>
inline Vector<kLanes> Activate(Vector<kLanes> x, float alpha, float beta) {
  using V = Vector<kLanes>;
  const V zero{};
  if constexpr (kKind == ActivationKind::kRelu) return Max<V>(x, zero);
  if constexpr (kKind == ActivationKind::kClip) {
    return Min<V>(Max<V>(x, Splat<kLanes>(alpha)), Splat<kLanes>(beta));
  }
  if constexpr (kKind == ActivationKind::kLeakyRelu) return x >= zero ? x : x * alpha;
  if constexpr (kKind == ActivationKind::kHardSigmoid) {
    return Min<V>(Max<V>(x * alpha + beta, zero), Splat<kLanes>(1.0f));
  }
  if constexpr (kKind == ActivationKind::kHardSwish) {
    return x * Min<V>(Max<V>(x / 6.0f + 0.5f, zero), Splat<kLanes>(1.0f));
  }
  if constexpr (kKind == ActivationKind::kSigmoid) return 1.0f / (1.0f + Exp<kLanes>(-x));
  if constexpr (kKind == ActivationKind::kTanh) return Tanh<kLanes>(x);
  // Exp is clamped, so the numerator must be: the result is below 1e-35 either way.
  if constexpr (kKind == ActivationKind::kSilu) {
    return Max<V>(x, Splat<kLanes>(-88.0f)) / (1.0f + Exp<kLanes>(-x));
  }
  return x;
}

// Calls body.template operator()<kind>().
template <typename Body>
inline void WithActivation(ActivationKind kind, const Body& body) {
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
