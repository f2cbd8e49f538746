// Sums of quantised convolutions on their way out: requantized, rounded and stored, built for each
// instruction set.
#pragma once

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "layouts/base/simd.h"
#include "templates/int8/pixels.h"

// Offsets inside a tile are small. NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)
namespace tilesmith::TILESMITH_ISA {
namespace {

typedef int32_t Sums __attribute__((vector_size(kWidth * sizeof(int32_t))));
typedef int32_t UnalignedSums __attribute__((vector_size(kWidth * sizeof(int32_t)), aligned(1), may_alias));
[[maybe_unused]] typedef int16_t TileShorts __attribute__((vector_size(kWidth * sizeof(int32_t))));

#ifdef TILESMITH_ISA_avx512_vnni
using Number = uint8_t;
#else
using Number = int16_t;
#endif
constexpr int kTileWordBytes = 4;
constexpr int kWordNumbers = kTileWordBytes / sizeof(Number);

// The sums that stay in registers: two vectors of channels by some pixels.
constexpr int kVectors = 2;
constexpr int kTileLanes = kVectors * kWidth;
constexpr int kTilePixels = kWordNumbers == 4 ? 12 : kWidth == 16 ? 8 : kWidth == 8 ? 6 : 4;
static_assert(kTilePixels == QuantizedConvTilePixels(kWidth == 16  ? Isa::kAvx512
                                                     : kWidth == 8 ? Isa::kAvx2
                                                                   : Isa::kPortable,
                                                     kWordNumbers == 4));

inline Sums LoadWords(const std::byte* from) { return *reinterpret_cast<const UnalignedSums*>(from); }
inline Sums LoadSums(const int32_t* from) { return *reinterpret_cast<const UnalignedSums*>(from); }

inline Sums SplatWord(const std::byte* from) {
  int32_t word;
  __builtin_memcpy(&word, from, sizeof(word));
  return Sums{} + word;
}

// sums + a[0] * b[0] + a[1] * b[1] + ... of each word
inline Sums AddProducts(Sums sums, Sums a, Sums b) {
#if defined(TILESMITH_ISA_avx512_vnni)
  return (Sums)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)a, (__m512i)b);
#elif defined(TILESMITH_ISA_avx512)
  return sums + (Sums)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(TILESMITH_ISA_avx2)
  return sums + (Sums)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return sums + (Sums)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
  const TileShorts left = (TileShorts)a, right = (TileShorts)b;
  for (int i = 0; i < kWidth; ++i) sums[i] += left[2 * i] * right[2 * i] + left[2 * i + 1] * right[2 * i + 1];
  return sums;
#endif
}

using TileFloats = Vector<kWidth>;

// Adding 1.5 * 2^23 rounds to an integer, ties to even, which then sits in the low mantissa bits.
[[maybe_unused]] constexpr float kTileRound = 12582912.0f;
[[maybe_unused]] constexpr int32_t kTileRoundBits = 0x4b400000;

// a * b + c, rounded once.
inline TileFloats MultiplyAdd(TileFloats a, TileFloats b, TileFloats c) {
#if defined(TILESMITH_ISA_avx512)
  return (TileFloats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(TILESMITH_ISA_avx2)
  return (TileFloats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  for (int i = 0; i < kWidth; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#endif
}

// The numbers that are rounded and then clamped, in registers. kSum: with a residual.
template <bool kSum>
struct Requantization {
  // A call would spill what is summed, as would those of the lambdas below.
  [[gnu::always_inline]] explicit Requantization(const QuantizedPixels& p) : sum(p.sum) {
    for (int v = 0; v < kVectors; ++v) multipliers[v] = Load<kWidth>(p.multipliers + v * kWidth);
#if defined(TILESMITH_ISA_avx512)
    const uint32_t real = 0xffffffffu >> (kTileLanes - p.channels);
    for (int v = 0; v < kVectors; ++v) masks[v] = static_cast<__mmask16>(real >> (v * kWidth));
#endif
  }

  // The result, in steps of the output, of vector `v` of pixel number `pixel`.
  TileFloats Steps(Sums sums, int v, int64_t pixel) const {
    const TileFloats reals = __builtin_convertvector(sums, TileFloats);
    if constexpr (!kSum) return reals * multipliers[v];
    const TileFloats steps = MultiplyAdd(reals, multipliers[v], Splat<kWidth>(sum.offset));
    const TileFloats inside = Min(Max(steps, Splat<kWidth>(sum.low)), Splat<kWidth>(sum.high));
    const TileFloats residual = __builtin_convertvector(ResidualBytes(pixel, v), TileFloats);
    return MultiplyAdd(residual, Splat<kWidth>(sum.factor), inside);
  }

  // With AVX-512 no byte behind the channels is read.
  Sums ResidualBytes(int64_t pixel, int v) const {
    typedef uint8_t Small __attribute__((vector_size(kWidth)));
    const uint8_t* const bytes = sum.residual + pixel * sum.step + v * kWidth;
#if defined(TILESMITH_ISA_avx512)
    const Small small = (Small)_mm_maskz_loadu_epi8(masks[v], bytes);
#else
    Small small;
    __builtin_memcpy(&small, bytes, sizeof(small));
#endif
    return __builtin_convertvector(small ^ sum.flip, Sums);
  }

  const QuantizedSumTerms sum;  // a copy, which stores of bytes do not change
  TileFloats multipliers[kVectors];
#if defined(TILESMITH_ISA_avx512)
  __mmask16 masks[kVectors];
#endif
};

#if defined(TILESMITH_ISA_avx512)
// GCC 12 warns of forms without a mask.
template <bool kBounded>
inline __m512i RoundToInts(TileFloats steps) {
  __m512 bounded = (__m512)steps;
  // What is too low becomes the lowest integer, and so would what is too high.
  if constexpr (!kBounded) bounded = _mm512_maskz_min_ps(0xffff, bounded, _mm512_set1_ps(1e6f));
  return _mm512_maskz_cvtps_epi32(0xffff, bounded);
}

// Four vectors of integers as bytes: of each vector four bytes follow each other, then those of the next.
struct BytePacker {
  explicit BytePacker(const QuantizedPixels& p)
      : zero(_mm512_set1_epi16(static_cast<int16_t>(p.zero))),
        low(_mm512_set1_epi8(static_cast<char>(p.low))),
        high(_mm512_set1_epi8(static_cast<char>(p.high))),
        flip(_mm512_set1_epi8(static_cast<char>(p.flip))) {}

  __m512i Pack(__m512i a, __m512i b, __m512i c, __m512i d) const {
    const __m512i ab = _mm512_adds_epi16(_mm512_packs_epi32(a, b), zero);
    const __m512i cd = _mm512_adds_epi16(_mm512_packs_epi32(c, d), zero);
    const __m512i bytes = _mm512_packus_epi16(ab, cd);
    return _mm512_xor_si512(_mm512_min_epu8(_mm512_max_epu8(bytes, low), high), flip);
  }
  // Packs them in the order of the vectors.
  __m512i PackInOrder(__m512i a, __m512i b, __m512i c, __m512i d) const {
    const Sums packed = (Sums)Pack(a, b, c, d);
    return (__m512i)__builtin_shufflevector(packed, packed, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11,
                                            15);
  }

  const __m512i zero, low, high, flip;
};

// Requantizes and stores pixels from number `first` on.
template <bool kSum, bool kBounded, int kPixels, int kUsed>
inline void StoreTile(const QuantizedPixels& p, int64_t first, const Sums (&sums)[kPixels][kUsed]) {
  const Requantization<kSum> requantization(p);
  const BytePacker packer(p);
  const auto rounded = [&](int i, int v) __attribute__((always_inline)) {
    return RoundToInts<kBounded>(requantization.Steps(sums[i][v], v, first + i));
  };
  uint8_t* out = p.out + first * p.out_step;
  const int64_t step = p.out_step;
  const auto mask = static_cast<__mmask32>(0xffffffffu >> (32 - p.channels));
  const bool whole = p.channels == kUsed * kWidth;
  if constexpr (kUsed == 2) {
#pragma GCC unroll 12
    for (int i = 0; i < kPixels; i += 2) {
      const int j = i + 1 < kPixels ? i + 1 : i;
      const __m512i two = packer.PackInOrder(rounded(i, 0), rounded(i, 1), rounded(j, 0), rounded(j, 1));
      const __m256i bytes[] = {_mm512_maskz_extracti64x4_epi64(0xff, two, 0),
                               _mm512_maskz_extracti64x4_epi64(0xff, two, 1)};
      for (int k = 0; k <= j - i; ++k, out += step) {
        if (whole) {
          _mm256_storeu_si256((__m256i_u*)out, bytes[k]);
        } else {
          _mm256_mask_storeu_epi8(out, mask, bytes[k]);
        }
      }
    }
  } else {
#pragma GCC unroll 12
    for (int i = 0; i < kPixels; i += 4) {
      const auto at = [&](int k) { return rounded(i + k < kPixels ? i + k : i, 0); };
      const __m512i four = packer.PackInOrder(at(0), at(1), at(2), at(3));
      const __m128i bytes[] = {
          _mm512_maskz_extracti32x4_epi32(0xf, four, 0), _mm512_maskz_extracti32x4_epi32(0xf, four, 1),
          _mm512_maskz_extracti32x4_epi32(0xf, four, 2), _mm512_maskz_extracti32x4_epi32(0xf, four, 3)};
      for (int k = 0; k < 4 && i + k < kPixels; ++k, out += step) {
        if (whole) {
          _mm_storeu_si128((__m128i_u*)out, bytes[k]);
        } else {
          _mm_mask_storeu_epi8(out, static_cast<__mmask16>(mask), bytes[k]);
        }
      }
    }
  }
}
#elif defined(TILESMITH_ISA_avx2)
// The bytes of two pixels, of each those of two vectors of integers.
struct BytePacker {
  explicit BytePacker(const QuantizedPixels& p)
      : zero(_mm256_set1_epi16(static_cast<int16_t>(p.zero))),
        low(_mm256_set1_epi8(static_cast<char>(p.low))),
        high(_mm256_set1_epi8(static_cast<char>(p.high))),
        flip(_mm256_set1_epi8(static_cast<char>(p.flip))) {}

  __m256i Pack(__m256i a, __m256i b, __m256i c, __m256i d) const {
    const __m256i ab = _mm256_adds_epi16(_mm256_packs_epi32(a, b), zero);
    const __m256i cd = _mm256_adds_epi16(_mm256_packs_epi32(c, d), zero);
    // Words of a, b, c and d by turns, the lower half of each before the upper one.
    const __m256i mixed = _mm256_packus_epi16(ab, cd);
    const __m256i bytes = _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    return _mm256_xor_si256(_mm256_min_epu8(_mm256_max_epu8(bytes, low), high), flip);
  }

  const __m256i zero, low, high, flip;
};

template <bool kBounded>
inline __m256i RoundToInts(TileFloats steps) {
  // What is too low becomes the lowest integer, and so would what is too high.
  if constexpr (!kBounded) steps = Min(steps, Splat<kWidth>(1e6f));
  return _mm256_cvtps_epi32((__m256)steps);
}

template <bool kSum, bool kBounded, int kPixels, int kUsed>
inline void StoreTile(const QuantizedPixels& p, int64_t first, const Sums (&sums)[kPixels][kUsed]) {
  static_assert(kUsed == kVectors);
  const Requantization<kSum> requantization(p);
  const BytePacker packer(p);
  const auto rounded = [&](int i, int v) __attribute__((always_inline)) {
    return RoundToInts<kBounded>(requantization.Steps(sums[i][v], v, first + i));
  };
  uint8_t* out = p.out + first * p.out_step;
#pragma GCC unroll 12
  for (int i = 0; i < kPixels; i += 2, out += 2 * p.out_step) {
    const int j = i + 1 < kPixels ? i + 1 : i;
    const __m256i two = packer.Pack(rounded(i, 0), rounded(i, 1), rounded(j, 0), rounded(j, 1));
    _mm_storeu_si128((__m128i_u*)out, _mm256_castsi256_si128(two));
    if (j > i) _mm_storeu_si128((__m128i_u*)(out + p.out_step), _mm256_extracti128_si256(two, 1));
  }
}
#else
// Precondition: all in [0, 255].
inline void StoreBytes(Sums low, Sums high, uint8_t flip, uint8_t* to) {
  for (int i = 0; i < kWidth; ++i) {
    to[i] = static_cast<uint8_t>(low[i]) ^ flip;
    to[i + kWidth] = static_cast<uint8_t>(high[i]) ^ flip;
  }
}

template <bool kSum, bool kBounded, int kPixels, int kUsed>
inline void StoreTile(const QuantizedPixels& p, int64_t first, const Sums (&sums)[kPixels][kUsed]) {
  static_assert(kUsed == kVectors);
  const Requantization<kSum> requantization(p);
  const TileFloats low = Splat<kWidth>(static_cast<float>(p.low - p.zero)),
                   high = Splat<kWidth>(static_cast<float>(p.high - p.zero));
  const Sums zero = Sums{} + (p.zero - kTileRoundBits);
  uint8_t* out = p.out + first * p.out_step;
#pragma GCC unroll 12
  for (int i = 0; i < kPixels; ++i, out += p.out_step) {
    Sums bytes[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const TileFloats steps = Min(Max(requantization.Steps(sums[i][v], v, first + i), low), high);
      bytes[v] = (Sums)(steps + kTileRound) + zero;
    }
    StoreBytes(bytes[0], bytes[1], p.flip, out);
  }
}
#endif

template <int kPixels, int kUsed>
inline void StoreReals(const QuantizedPixels& p, int64_t first, const Sums (&sums)[kPixels][kUsed]) {
#pragma GCC unroll 12
  for (int i = 0; i < kPixels; ++i) {
    for (int v = 0; v < kUsed; ++v) {
      const TileFloats reals =
          __builtin_convertvector(sums[i][v], TileFloats) * Load<kWidth>(p.multipliers + v * kWidth);
      Store<kWidth>(p.reals + (first + i) * kTileLanes + v * kWidth, reals);
    }
  }
}

// Stores sums as bytes or reals. Loops over pixels are unrolled wherever sums are touched, or they would not
// stay in registers.
template <bool kBounded, int kPixels, int kUsed>
inline void StoreAs(const QuantizedPixels& p, int64_t first, const Sums (&sums)[kPixels][kUsed]) {
  if (p.reals != nullptr) return StoreReals<kPixels>(p, first, sums);
  if (p.sum.residual != nullptr) return StoreTile<true, kBounded>(p, first, sums);
  StoreTile<false, kBounded>(p, first, sums);
}

// Leaves them to who stores them later.
template <int kPixels, int kUsed>
inline void StoreAsSums(const QuantizedPixels& p, int64_t first, const Sums (&sums)[kPixels][kUsed]) {
#pragma GCC unroll 12
  for (int i = 0; i < kPixels; ++i) {
    for (int v = 0; v < kUsed; ++v)
      __builtin_memcpy(p.sums + (first + i) * kTileLanes + v * kWidth, &sums[i][v], sizeof(Sums));
  }
}

}  // namespace
}  // namespace tilesmith::TILESMITH_ISA
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
