// CopyRuns: vector copies of short runs of channels.
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "layouts/base/simd.h"
#include "layouts/transform_moves.h"

namespace tilesmith::TILESMITH_ISA {
namespace {

template <int kFloats>
inline void CopyVector(const float* in, float* out) {
  Store<kFloats>(out, Load<kFloats>(in));
}

template <int kLength>
inline void CopyFixed(const float* in, float* out) {
  constexpr int kStep = kLength < kWidth ? kLength : kWidth;
#pragma GCC unroll 16
  for (int i = 0; i < kLength; i += kStep) CopyVector<kStep>(in + i, out + i);
}

#if defined(__AVX512F__)
inline __mmask16 First(int64_t count) {
  return count >= 16 ? 0xFFFF : count <= 0 ? 0 : static_cast<__mmask16>((1u << count) - 1);
}

inline void CopyPadded(const float* in, float* out, int64_t length, int64_t padded) {
  for (int64_t i = 0; i < padded; i += 16) {
    const __m512 v = i < length ? _mm512_maskz_loadu_ps(First(length - i), in + i) : _mm512_setzero_ps();
    _mm512_mask_storeu_ps(out + i, First(padded - i), v);
  }
}
#else
inline void CopyPadded(const float* in, float* out, int64_t length, int64_t padded) {
  int64_t i = 0;
  for (; i + kWidth <= length; i += kWidth) CopyVector<kWidth>(in + i, out + i);
  if (kWidth > 4 && i + 4 <= length) {
    CopyVector<4>(in + i, out + i);
    i += 4;
  }
  for (; i < length; ++i) out[i] = in[i];
  for (; i < padded; ++i) out[i] = 0;
}
#endif

template <int kLength>
void CopyRunsOf(const RunMove<float>& m) {
  for (int64_t p = 0; p < m.pixels; ++p) {
    const float* in = m.in + p * m.in_pixel_stride;
    float* out = m.out + p * m.out_pixel_stride;
    for (int64_t r = 0; r < m.runs; ++r) {
      CopyFixed<kLength>(in + r * m.in_run_stride, out + r * m.out_run_stride);
    }
  }
}

void CopyAnyRuns(const RunMove<float>& m) {
  for (int64_t p = 0; p < m.pixels; ++p) {
    const float* in = m.in + p * m.in_pixel_stride;
    float* out = m.out + p * m.out_pixel_stride;
    for (int64_t r = 0; r < m.runs; ++r) {
      CopyPadded(in + r * m.in_run_stride, out + r * m.out_run_stride, m.length, m.padded);
    }
  }
}

void CopyElementRuns(const RunMove<float>& move) {
  if (move.length == move.padded) {
    switch (move.length) {
      case 4:
        return CopyRunsOf<4>(move);
      case 8:
        return CopyRunsOf<8>(move);
      case 16:
        return CopyRunsOf<16>(move);
      case 32:
        return CopyRunsOf<32>(move);
      case 64:
        return CopyRunsOf<64>(move);
      default:
        break;
    }
  }
  CopyAnyRuns(move);
}

// Elements of other sizes.
template <typename Element>
void CopyElementRuns(const RunMove<Element>& m) {
  for (int64_t p = 0; p < m.pixels; ++p) {
    for (int64_t r = 0; r < m.runs; ++r) {
      const Element* in = m.in + p * m.in_pixel_stride + r * m.in_run_stride;
      Element* out = m.out + p * m.out_pixel_stride + r * m.out_run_stride;
      __builtin_memcpy(out, in, static_cast<size_t>(m.length) * sizeof(Element));
      for (int64_t i = m.length; i < m.padded; ++i) out[i] = 0;
    }
  }
}

}  // namespace

template <typename Element>
void CopyRuns(const RunMove<Element>& move) {
  CopyElementRuns(move);
}

template void CopyRuns(const RunMove<uint8_t>&);
template void CopyRuns(const RunMove<uint16_t>&);
template void CopyRuns(const RunMove<float>&);
template void CopyRuns(const RunMove<uint64_t>&);

}  // namespace tilesmith::TILESMITH_ISA
