#include "templates/int8/tile_loops.h"

#ifdef TILESMITH_ISA_avx512_vnni
#include <type_traits>

namespace tilesmith::avx512_vnni {
namespace {

// A pixel's four words are loaded into each quarter of a vector, so lane l has word l % 4, which is of its
// own group. Where a group has two or four words, sum number `t` has the products of the output of lane
// l ^ t. These are the outputs in the order of lanes, and lanes in the order of outputs.
template <int kWords>
inline Sums InLanes(Sums outputs) {
  if constexpr (kWords == 4) return outputs;
  if constexpr (kWords == 1)
    return __builtin_shufflevector(outputs, outputs, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return __builtin_shufflevector(outputs, outputs, 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
}
template <int kWords>
inline Sums InOrder(Sums lanes) {
  if constexpr (kWords != 2) return InLanes<kWords>(lanes);
  return __builtin_shufflevector(lanes, lanes, 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
}
inline Sums NeighboursSwapped(Sums lanes) {
  return __builtin_shufflevector(lanes, lanes, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
}

inline Sums PairsSwapped(Sums lanes) {
  return __builtin_shufflevector(lanes, lanes, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
}

inline Sums InEachQuarter(const std::byte* pixel) {
  return (Sums)_mm512_maskz_broadcast_i32x4(0xffff,
                                            _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(pixel)));
}

template <int kWords, bool kBounded, int kPixels>
inline void GroupedTile(const QuantizedPixels& p, int64_t first) {
  constexpr int64_t kVectorBytes = int64_t{kWidth} * kTileWordBytes;
  Sums sums[kPixels][kWords];
  const std::byte* in[kPixels];
  const Sums bias = InLanes<kWords>(LoadSums(p.bias));
#pragma GCC unroll 12
  for (int i = 0; i < kPixels; ++i) {
    for (int t = 0; t < kWords; ++t) sums[i][t] = t == 0 ? bias : Sums{};
    in[i] = p.input + p.offsets[first + i];
  }
  const std::byte* weights = p.weights;
  for (int64_t run = 0; run < p.run_count; ++run) {
    const int64_t begin = p.runs[run], end = begin + kTileWordBytes * p.words;
    for (int64_t at = begin; at < end; at += kGroupedPixelBytes) {
      Sums right[kWords];
      for (int t = 0; t < kWords; ++t, weights += kVectorBytes) right[t] = LoadWords(weights);
#pragma GCC unroll 12
      for (int i = 0; i < kPixels; ++i) {
        const Sums left = InEachQuarter(in[i] + at);
        for (int t = 0; t < kWords; ++t) sums[i][t] = AddProducts(sums[i][t], left, right[t]);
      }
    }
  }
  Sums done[kPixels][1];
#pragma GCC unroll 12
  for (int i = 0; i < kPixels; ++i) {
    if constexpr (kWords >= 2) sums[i][0] += NeighboursSwapped(sums[i][1]);
    if constexpr (kWords == 4) sums[i][0] += PairsSwapped(sums[i][2] + NeighboursSwapped(sums[i][3]));
    done[i][0] = InOrder<kWords>(sums[i][0]);
  }
  StoreAs<kBounded>(p, first, done);
}

template <int kWords, bool kBounded>
inline void ConvolveGroupsOf(const QuantizedPixels& p) {
  constexpr int kMany = GroupedPixels(kWords), kFew = 4;
  int64_t first = 0;
  for (; first + kMany <= p.count; first += kMany) GroupedTile<kWords, kBounded, kMany>(p, first);
  for (; first + kFew <= p.count; first += kFew) GroupedTile<kWords, kBounded, kFew>(p, first);
  for (; first < p.count; ++first) GroupedTile<kWords, kBounded, 1>(p, first);
}

}  // namespace

void ConvolveGroups(const QuantizedPixels& pixels) {
  const auto convolve = [&]<int kWords>(std::integral_constant<int, kWords>) {
    pixels.bounded ? ConvolveGroupsOf<kWords, true>(pixels) : ConvolveGroupsOf<kWords, false>(pixels);
  };
  if (pixels.group_words == 1) return convolve(std::integral_constant<int, 1>());
  if (pixels.group_words == 2) return convolve(std::integral_constant<int, 2>());
  convolve(std::integral_constant<int, 4>());
}

}  // namespace tilesmith::avx512_vnni

#endif
