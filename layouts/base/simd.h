// Vectors of floats for *_isa.cc files. Only those include this: everything lives in the namespace of the
// instruction set being compiled, without linkage (isa_dispatch.h says why).
#pragma once

#ifdef __SSE2__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // of what is not to be defined
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

#include <cstdint>

namespace tilesmith::TILESMITH_ISA {
namespace {

// Floats in the widest vector. Vector types rather than plain arrays: accumulators then stay in registers.
#if defined(TILESMITH_ISA_avx512)
constexpr int kWidth = 16;
#elif defined(TILESMITH_ISA_avx2)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif

template <int kLanes>
struct VectorOf {
  typedef float Type __attribute__((vector_size(kLanes * sizeof(float))));
  typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));
  typedef float Unaligned
      __attribute__((vector_size(kLanes * sizeof(float)), aligned(sizeof(float)), may_alias));
};
template <>
struct VectorOf<1> {
  using Type = float;
  using Ints = int32_t;
  using Unaligned = float;
};
template <int kLanes>
using Vector = typename VectorOf<kLanes>::Type;

template <int kLanes>
inline Vector<kLanes> Load(const float* from) {
  return *reinterpret_cast<const typename VectorOf<kLanes>::Unaligned*>(from);
}
template <int kLanes>
inline void Store(float* to, Vector<kLanes> value) {
  *reinterpret_cast<typename VectorOf<kLanes>::Unaligned*>(to) = value;
}
template <int kLanes>
inline Vector<kLanes> Splat(float value) {
  return value - Vector<kLanes>{};  // minus zero leaves every value as it is, and costs nothing
}
#ifdef TILESMITH_FUSED
// a * b + c, rounded once, without instructions for it. The product of two floats is exact as a double; the
// sum is rounded to odd (where it is inexact its last bit is set), so that rounding it to a float is as if it
// were exact.
inline __m128d SumRoundedToOdd(__m128d product, __m128d c) {
  const __m128d sum = _mm_add_pd(product, c), part = _mm_sub_pd(sum, product);
  const __m128d error = _mm_add_pd(_mm_sub_pd(product, _mm_sub_pd(sum, part)), _mm_sub_pd(c, part));
  const __m128d sign = _mm_set1_pd(-0.0);
  // A NaN, as there is behind an infinite sum, is no error.
  const __m128i inexact = _mm_castpd_si128(_mm_cmplt_pd(_mm_setzero_pd(), _mm_andnot_pd(sign, error)));
  const __m128i bits = _mm_castpd_si128(sum), one = _mm_set1_epi64x(1);
  const __m128i even = _mm_sub_epi64(_mm_and_si128(bits, one), one);
  const __m128i inward = _mm_srli_epi64(_mm_castpd_si128(_mm_xor_pd(sum, error)), 63);
  const __m128i step = _mm_sub_epi64(one, _mm_add_epi64(inward, inward));
  return _mm_castsi128_pd(_mm_add_epi64(bits, _mm_and_si128(_mm_and_si128(inexact, even), step)));
}
inline __m128 FusedMultiplyAdd(__m128 a, __m128 b, __m128 c) {
  const auto low = [](__m128 v) { return _mm_cvtps_pd(v); };
  const auto high = [](__m128 v) { return _mm_cvtps_pd(_mm_movehl_ps(v, v)); };
  const __m128 first = _mm_cvtpd_ps(SumRoundedToOdd(_mm_mul_pd(low(a), low(b)), low(c)));
  return _mm_movelh_ps(first, _mm_cvtpd_ps(SumRoundedToOdd(_mm_mul_pd(high(a), high(b)), high(c))));
}
#endif
// a * b + c, rounded once, except that the plain portable build rounds the product too, where the CPU it is
// compiled for has no instruction that does not.
template <typename V>
inline V MultiplyAdd(V a, V b, V c) {
#if defined(TILESMITH_FUSED)
  if constexpr (sizeof(V) == sizeof(float)) {
    const auto wide = [](float x) { return _mm_set_sd(static_cast<double>(x)); };
    return _mm_cvtss_f32(_mm_cvtpd_ps(SumRoundedToOdd(_mm_mul_sd(wide(a), wide(b)), wide(c))));
  } else {
    static_assert(sizeof(V) == sizeof(__m128));
    return (V)FusedMultiplyAdd((__m128)a, (__m128)b, (__m128)c);
  }
#elif defined(TILESMITH_ISA_avx512) || defined(TILESMITH_ISA_avx2)
  if constexpr (sizeof(V) == sizeof(float)) {
    return __builtin_fmaf(a, b, c);
  } else if constexpr (sizeof(V) == sizeof(__m128)) {
    return (V)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
  } else if constexpr (sizeof(V) == sizeof(__m256)) {
    return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
  }
#ifdef TILESMITH_ISA_avx512
  else {
    return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
  }
#endif
#elif defined(__FP_FAST_FMAF)
  if constexpr (sizeof(V) == sizeof(float)) {
    return __builtin_fmaf(a, b, c);
  } else {
    for (unsigned i = 0; i < sizeof(V) / sizeof(float); ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
  }
#else
  return a * b + c;
#endif
}
// As std::max and std::min: a NaN in `a` stays.
template <typename V>
inline V Max(V a, V b) {
  return a < b ? b : a;
}
template <typename V>
inline V Min(V a, V b) {
  return b < a ? b : a;
}

}  // namespace
}  // namespace tilesmith::TILESMITH_ISA
