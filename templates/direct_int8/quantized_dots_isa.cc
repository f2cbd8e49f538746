#include "templates/int8/pixels.h"

#ifdef TILESMITH_ISA_avx512_vnni

#include <immintrin.h>

namespace tilesmith::avx512_vnni {

void StoreSums(const QuantizedPixels& pixels, const int32_t* sums);  // quantized_conv_isa.cc

namespace {

constexpr int64_t kBytes = 64;
constexpr int64_t kLanes = QuantizedConvLanes(Isa::kAvx512);

// GCC 12 warns of forms without a mask.
inline __m512i AddLow(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_maskz_unpacklo_epi32(0xffff, a, b),
                          _mm512_maskz_unpackhi_epi32(0xffff, a, b));
}
inline __m512i AddPairs(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_maskz_unpacklo_epi64(0xff, a, b), _mm512_maskz_unpackhi_epi64(0xff, a, b));
}

// The sums of four vectors' lanes.
inline __m128i SumsOf(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i all = AddPairs(AddLow(a, b), AddLow(c, d));
  const __m256i half = _mm256_add_epi32(_mm512_maskz_extracti64x4_epi64(0xff, all, 0),
                                        _mm512_maskz_extracti64x4_epi64(0xff, all, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

// Sums the dots of kPixels pixels from number `first` on, with the bias, of which four are read:
// [pixel][kLanes].
template <int kChannels, int kPixels>
inline void Dots(const QuantizedPixels& p, int64_t first, int32_t* sums) {
  __m512i dots[kPixels][kMostDots];
  const uint8_t* in[kPixels];
#pragma GCC unroll 4
  for (int i = 0; i < kPixels; ++i) {
    for (auto& dot : dots[i]) dot = _mm512_setzero_si512();
    in[i] = reinterpret_cast<const uint8_t*>(p.input) + p.offsets[first + i];
  }
  const int64_t run_bytes = 4 * p.words, stored = DotRunBytes(p.words);
  const std::byte* weights = p.weights;
  for (int64_t run = 0; run < p.run_count; ++run, weights += kChannels * stored) {
    for (int64_t at = 0; at < run_bytes; at += kBytes) {
      const int64_t left = run_bytes - at;
      const __mmask64 mask = left >= kBytes ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
      __m512i right[kChannels];
      for (int o = 0; o < kChannels; ++o) right[o] = _mm512_loadu_si512(weights + o * stored + at);
#pragma GCC unroll 4
      for (int i = 0; i < kPixels; ++i) {
        const __m512i left_bytes = _mm512_maskz_loadu_epi8(mask, in[i] + p.runs[run] + at);
        for (int o = 0; o < kChannels; ++o)
          dots[i][o] = _mm512_dpbusd_epi32(dots[i][o], left_bytes, right[o]);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kPixels; ++i) {
    const __m128i four = SumsOf(dots[i][0], dots[i][1], dots[i][2], dots[i][3]);
    const __m128i bias = _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(p.bias));
    _mm_storeu_si128(reinterpret_cast<__m128i_u*>(sums + i * kLanes), _mm_add_epi32(four, bias));
  }
}

template <int kChannels>
inline void DotsOf(const QuantizedPixels& p) {
  constexpr int64_t kPiece = 8 * kDotPixels;
  alignas(64) int32_t sums[kPiece * kLanes] = {};
  QuantizedPixels piece = p;
  for (int64_t first = 0; first < p.count; first += kPiece) {
    piece.count = p.count - first < kPiece ? p.count - first : kPiece;
    int64_t i = 0;
    for (; i + kDotPixels <= piece.count; i += kDotPixels)
      Dots<kChannels, kDotPixels>(p, first + i, sums + i * kLanes);
    for (; i < piece.count; ++i) Dots<kChannels, 1>(p, first + i, sums + i * kLanes);
    StoreSums(piece, sums);
    piece.Advance(piece.count, kLanes);
  }
}

}  // namespace

void ConvolveDots(const QuantizedPixels& pixels) {
  switch (pixels.channels) {
    case 1:
      return DotsOf<1>(pixels);
    case 2:
      return DotsOf<2>(pixels);
    case 3:
      return DotsOf<3>(pixels);
    default:
      return DotsOf<4>(pixels);
  }
}

}  // namespace tilesmith::avx512_vnni

#endif
