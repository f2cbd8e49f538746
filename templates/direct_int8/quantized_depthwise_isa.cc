#include "templates/direct_int8/depthwise_loops.h"

#ifdef TILESMITH_ISA_avx512_vnni

#include <immintrin.h>

namespace tilesmith::avx512_vnni {
namespace {

// GCC 12 warns of forms without a mask.
constexpr __mmask16 kAll16 = 0xffff;
constexpr __mmask32 kAll32 = 0xffffffff;
constexpr __mmask64 kAll64 = 0xffffffffffffffff;

struct Wide {
  using Ints = __m512i;
  static constexpr int64_t kBytes = 64;
  static Ints Load(const void* p) { return _mm512_loadu_si512(p); }
  static void Store(uint8_t* p, Ints bytes, int64_t channels) {
    if (channels == kBytes) return _mm512_storeu_si512(p, bytes);
    _mm512_mask_storeu_epi8(p, kAll64 >> (kBytes - channels), bytes);
  }
  static Ints LowBytes(Ints a, Ints b) { return _mm512_maskz_unpacklo_epi8(kAll64, a, b); }
  static Ints HighBytes(Ints a, Ints b) { return _mm512_maskz_unpackhi_epi8(kAll64, a, b); }
  static Ints LowPairs(Ints a, Ints b) { return _mm512_maskz_unpacklo_epi16(kAll32, a, b); }
  static Ints HighPairs(Ints a, Ints b) { return _mm512_maskz_unpackhi_epi16(kAll32, a, b); }
  static Ints AddProducts(Ints sums, Ints a, Ints b) { return _mm512_dpbusd_epi32(sums, a, b); }
  // What is too low becomes the lowest integer, and so would what is too high.
  static Ints Steps(Ints sums, const float* multipliers) {
    const __m512 reals = _mm512_maskz_cvtepi32_ps(kAll16, sums);
    const __m512 steps = _mm512_mul_ps(reals, _mm512_loadu_ps(multipliers));
    return _mm512_maskz_cvtps_epi32(kAll16, _mm512_maskz_min_ps(kAll16, steps, _mm512_set1_ps(1e6f)));
  }
  static Ints SplatShort(int32_t value) { return _mm512_set1_epi16(static_cast<int16_t>(value)); }
  static Ints SplatByte(int32_t value) { return _mm512_set1_epi8(static_cast<char>(value)); }
  static Ints Shorts(Ints a, Ints b, Ints zero) { return _mm512_adds_epi16(_mm512_packs_epi32(a, b), zero); }
  static Ints Bytes(Ints a, Ints b) { return _mm512_packus_epi16(a, b); }
  static Ints Clamp(Ints bytes, Ints low, Ints high) {
    return _mm512_min_epu8(_mm512_max_epu8(bytes, low), high);
  }
  static Ints Flip(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
};

struct Narrow {
  using Ints = __m256i;
  static constexpr int64_t kBytes = 32;
  static Ints Load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i_u*>(p)); }
  static void Store(uint8_t* p, Ints bytes, int64_t channels) {
    if (channels == kBytes) return _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(p), bytes);
    _mm256_mask_storeu_epi8(p, kAll32 >> (kBytes - channels), bytes);
  }
  static Ints LowBytes(Ints a, Ints b) { return _mm256_unpacklo_epi8(a, b); }
  static Ints HighBytes(Ints a, Ints b) { return _mm256_unpackhi_epi8(a, b); }
  static Ints LowPairs(Ints a, Ints b) { return _mm256_unpacklo_epi16(a, b); }
  static Ints HighPairs(Ints a, Ints b) { return _mm256_unpackhi_epi16(a, b); }
  static Ints AddProducts(Ints sums, Ints a, Ints b) { return _mm256_dpbusd_epi32(sums, a, b); }
  static Ints Steps(Ints sums, const float* multipliers) {
    const __m256 steps = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_loadu_ps(multipliers));
    return _mm256_cvtps_epi32(_mm256_min_ps(steps, _mm256_set1_ps(1e6f)));
  }
  static Ints SplatShort(int32_t value) { return _mm256_set1_epi16(static_cast<int16_t>(value)); }
  static Ints SplatByte(int32_t value) { return _mm256_set1_epi8(static_cast<char>(value)); }
  static Ints Shorts(Ints a, Ints b, Ints zero) { return _mm256_adds_epi16(_mm256_packs_epi32(a, b), zero); }
  static Ints Bytes(Ints a, Ints b) { return _mm256_packus_epi16(a, b); }
  static Ints Clamp(Ints bytes, Ints low, Ints high) {
    return _mm256_min_epu8(_mm256_max_epu8(bytes, low), high);
  }
  static Ints Flip(Ints a, Ints b) { return _mm256_xor_si256(a, b); }
};

// A vector for each four of 16 channels.
template <class V>
struct Four {
  typename V::Ints v[4];
};

template <class V>
inline Four<V> Words(const uint8_t* in, const int32_t* taps) {
  const auto a = V::Load(in + taps[0]), b = V::Load(in + taps[1]);
  const auto c = V::Load(in + taps[2]), d = V::Load(in + taps[3]);
  const auto ab = V::LowBytes(a, b), cd = V::LowBytes(c, d);
  const auto ab_high = V::HighBytes(a, b), cd_high = V::HighBytes(c, d);
  return {{V::LowPairs(ab, cd), V::HighPairs(ab, cd), V::LowPairs(ab_high, cd_high),
           V::HighPairs(ab_high, cd_high)}};
}

template <class V>
inline Four<V> LoadFour(const void* from) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  return {{V::Load(bytes), V::Load(bytes + V::kBytes), V::Load(bytes + 2 * V::kBytes),
           V::Load(bytes + 3 * V::kBytes)}};
}

template <class V>
inline void AddWords(Four<V>& sums, const Four<V>& words, const int8_t* weights) {
  for (int j = 0; j < 4; ++j)
    sums.v[j] = V::AddProducts(sums.v[j], words.v[j], V::Load(weights + j * V::kBytes));
}

template <class V>
struct Finish {
  explicit Finish(const DepthwiseColumns& c)
      : multipliers(c.multipliers),
        channels(c.channels),
        zero(V::SplatShort(c.zero)),
        low(V::SplatByte(c.low)),
        high(V::SplatByte(c.high)),
        flip(V::SplatByte(c.flip)) {}

  void Store(const Four<V>& sums, uint8_t* out) const {
    constexpr int64_t kFloats = V::kBytes / 4;
    typename V::Ints steps[4];
    for (int j = 0; j < 4; ++j) steps[j] = V::Steps(sums.v[j], multipliers + j * kFloats);
    const auto bytes = V::Bytes(V::Shorts(steps[0], steps[1], zero), V::Shorts(steps[2], steps[3], zero));
    V::Store(out, V::Flip(V::Clamp(bytes, low, high), flip), channels);
  }

  const float* multipliers;
  int64_t channels;
  typename V::Ints zero, low, high, flip;
};

constexpr int64_t kWordBytes = 4 * kDepthwiseLanes;  // of a word of all channels

template <class V>
inline void Columns(const DepthwiseColumns& c) {
  const Finish<V> finish(c);
  const Four<V> bias = LoadFour<V>(c.bias);
  int64_t x = 0;
  for (; x + 2 <= c.count; x += 2) {
    const uint8_t* const in = c.input + x * c.column_stride;
    Four<V> first = bias, second = bias;
    for (int64_t word = 0; word < c.words; ++word) {
      const Four<V> weights = LoadFour<V>(c.weights + word * kWordBytes);
      const Four<V> left = Words<V>(in, c.taps + 4 * word);
      for (int j = 0; j < 4; ++j) first.v[j] = V::AddProducts(first.v[j], left.v[j], weights.v[j]);
      const Four<V> right = Words<V>(in + c.column_stride, c.taps + 4 * word);
      for (int j = 0; j < 4; ++j) second.v[j] = V::AddProducts(second.v[j], right.v[j], weights.v[j]);
    }
    finish.Store(first, c.out + x * c.out_step);
    finish.Store(second, c.out + (x + 1) * c.out_step);
  }
  if (x == c.count) return;
  Four<V> sums = bias;
  for (int64_t word = 0; word < c.words; ++word) {
    AddWords(sums, Words<V>(c.input + x * c.column_stride, c.taps + 4 * word), c.weights + word * kWordBytes);
  }
  finish.Store(sums, c.out + x * c.out_step);
}

template <class V>
inline void Pairs(const DepthwiseColumns& c) {
  const Finish<V> finish(c);
  const Four<V> bias = LoadFour<V>(c.bias);
  const uint8_t* in = c.input;
  Four<V> columns[3] = {Words<V>(in, c.taps), Words<V>(in + c.column_stride, c.taps), {}};
  in += 2 * c.column_stride;
  uint8_t* out = c.out;
  for (int64_t x = 0; x < c.count; ++x, in += c.column_stride, out += c.out_step) {
    columns[2] = Words<V>(in, c.taps);
    for (int row = 0; row < 2; ++row) {
      Four<V> sums = bias;
      for (int j = 0; j < 3; ++j) AddWords(sums, columns[j], c.weights + (3 * row + j) * kWordBytes);
      finish.Store(sums, out + row * c.out_row_step);
    }
    columns[0] = columns[1];
    columns[1] = columns[2];
  }
}

}  // namespace

void ConvolveDepthwiseColumns(const DepthwiseColumns& columns) {
  if (columns.channels <= kDepthwiseNarrow) return Columns<Narrow>(columns);
  Columns<Wide>(columns);
}

void ConvolveDepthwisePairs(const DepthwiseColumns& columns) {
  if (columns.channels <= kDepthwiseNarrow) return Pairs<Narrow>(columns);
  Pairs<Wide>(columns);
}

}  // namespace tilesmith::avx512_vnni

#endif
