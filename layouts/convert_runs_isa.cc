// ConvertRuns: f32 to bf16 or f16 and back, by arithmetic on the bits, which compilers turn into vectors, and
// between f32 and f16 by AVX-512's instructions for that, which look at no mode of the CPU.
#ifdef TILESMITH_ISA_avx512
#include <immintrin.h>
#endif

#include "layouts/base/simd.h"
#include "layouts/convert_runs.h"

namespace tilesmith::TILESMITH_ISA {
namespace {

inline uint32_t BitsOf(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline void ConvertElement(float from, uint16_t& to) {
  const uint32_t bits = BitsOf(from);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const uint32_t quiet = bits >> 16 | 0x40;
  to = static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

inline void ConvertElement(uint16_t from, float& to) {
  const uint32_t bits = static_cast<uint32_t>(from) << 16;
  __builtin_memcpy(&to, &bits, sizeof(bits));
}

inline float FloatOf(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

// Each case is computed for every number, and one is chosen.
inline void ConvertElement(float from, HalfBits& to) {
  const uint32_t bits = BitsOf(from), magnitude = bits & 0x7fffffff;
  const uint32_t quiet = 0x7e00 | (magnitude >> 13 & 0x3ff);
  // Their last bit is worth 2^-24, as that of 0.5 is.
  const uint32_t subnormal = BitsOf(FloatOf(magnitude) + 0.5f) - BitsOf(0.5f);
  const uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
  const uint32_t finite = magnitude < 0x38800000 ? subnormal : normal;
  const uint32_t number = magnitude >= 0x477ff000 ? 0x7c00 : finite;  // 65520 and more are infinite
  to.bits = static_cast<uint16_t>((bits >> 16 & 0x8000) | (magnitude > 0x7f800000 ? quiet : number));
}

inline void ConvertElement(HalfBits from, float& to) {
  const uint32_t bits = from.bits, magnitude = bits & 0x7fff;
  const uint32_t quiet = magnitude > 0x7c00 ? 0x400000 : 0;
  const uint32_t special = ((magnitude << 13) + 0x70000000) | quiet;
  const uint32_t subnormal = BitsOf(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t normal = (magnitude << 13) + 0x38000000;
  const uint32_t finite = magnitude < 0x400 ? subnormal : normal;
  to = FloatOf((bits & 0x8000) << 16 | (magnitude >= 0x7c00 ? special : finite));
}

template <typename From, typename To>
inline void ConvertRun(const From* __restrict in, To* __restrict out, int64_t length) {
  for (int64_t i = 0; i < length; ++i) ConvertElement(in[i], out[i]);
}

#ifdef TILESMITH_ISA_avx512
inline __mmask16 FirstOf(int64_t count) {
  return static_cast<__mmask16>(count < 16 ? (1u << count) - 1 : 0xffffu);
}
inline void ConvertRun(const float* __restrict in, HalfBits* __restrict out, int64_t length) {
  for (int64_t i = 0; i < length; i += 16) {
    const __mmask16 lanes = FirstOf(length - i);
    const __m512 floats = _mm512_maskz_loadu_ps(lanes, in + i);
    _mm256_mask_storeu_epi16(out + i, lanes, _mm512_maskz_cvtps_ph(lanes, floats, _MM_FROUND_TO_NEAREST_INT));
  }
}
inline void ConvertRun(const HalfBits* __restrict in, float* __restrict out, int64_t length) {
  for (int64_t i = 0; i < length; i += 16) {
    const __mmask16 lanes = FirstOf(length - i);
    _mm512_mask_storeu_ps(out + i, lanes,
                          _mm512_maskz_cvtph_ps(lanes, _mm256_maskz_loadu_epi16(lanes, in + i)));
  }
}
#endif

// A length known to the compiler is a vector or two, without a loop.
template <int kLength, typename From, typename To>
void ConvertRunsOf(const ConvertMove<From, To>& m) {
  for (int64_t p = 0; p < m.pixels; ++p)
    for (int64_t r = 0; r < m.runs; ++r)
      ConvertRun(m.in + p * m.in_pixel_stride + r * m.in_run_stride,
                 m.out + p * m.out_pixel_stride + r * m.out_run_stride, kLength);
}

template <typename From, typename To>
void ConvertAnyRuns(const ConvertMove<From, To>& m) {
  for (int64_t p = 0; p < m.pixels; ++p) {
    for (int64_t r = 0; r < m.runs; ++r) {
      auto* out = m.out + p * m.out_pixel_stride + r * m.out_run_stride;
      ConvertRun(m.in + p * m.in_pixel_stride + r * m.in_run_stride, out, m.length);
      for (int64_t i = m.length; i < m.padded; ++i) out[i] = {};
    }
  }
}

}  // namespace

template <typename From, typename To>
void ConvertRuns(const ConvertMove<From, To>& move) {
  if (move.length == move.padded && move.length == 16) return ConvertRunsOf<16>(move);
  if (move.length == move.padded && move.length == 32) return ConvertRunsOf<32>(move);
  ConvertAnyRuns(move);
}

template void ConvertRuns(const ConvertMove<float>&);
template void ConvertRuns(const ConvertMove<uint16_t>&);
template void ConvertRuns(const ConvertMove<float, HalfBits>&);
template void ConvertRuns(const ConvertMove<HalfBits>&);

}  // namespace tilesmith::TILESMITH_ISA
