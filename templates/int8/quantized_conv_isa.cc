#include "templates/int8/tile_loops.h"

// Offsets inside a tile are small. NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)
namespace tilesmith::TILESMITH_ISA {
namespace {

// The tile of kPixels pixels from number `first` on, kUsed vectors of channels of them. kShared: all lanes
// read the same words; some of the weights of the next block are then fetched meanwhile.
template <int kPixels, int kUsed, bool kShared>
inline void Tile(const QuantizedPixels& p, int64_t first) {
  constexpr int64_t kVectorBytes = kWidth * kTileWordBytes, kPartBytes = kTileWordBytes * kDensePartWords;
  constexpr int kLevel2 = 2;
  Sums sums[kPixels][kUsed];
  const std::byte* in[kPixels];
#pragma GCC unroll 12
  for (int i = 0; i < kPixels; ++i) {
    for (int v = 0; v < kUsed; ++v) sums[i][v] = LoadSums(p.bias + v * kWidth);
    in[i] = p.input + p.offsets[first + i];
  }
  const std::byte* weights = p.weights;
  const std::byte* next = p.next_weights + first / p.tile_pixels * p.next_step;
  for (int64_t run = 0; run < p.run_count; ++run) {
    if constexpr (kShared) weights = p.weights + p.run_weights[run];
    int64_t at = p.runs[run];
    const int64_t end = at + kTileWordBytes * (kShared ? p.words : 1);
    while (at < end) {
      const int64_t stop = kShared && end - at > kPartBytes ? at + kPartBytes : end;
      for (; at < stop; at += kTileWordBytes) {
        Sums right[kUsed];
        for (int v = 0; v < kUsed; ++v) right[v] = LoadWords(weights + v * kVectorBytes);
        weights += kVectors * kVectorBytes;
#pragma GCC unroll 12
        for (int i = 0; i < kPixels; ++i) {
          if constexpr (kShared) {
            const Sums left = SplatWord(in[i] + at);
            for (int v = 0; v < kUsed; ++v) sums[i][v] = AddProducts(sums[i][v], left, right[v]);
          } else {
            for (int v = 0; v < kUsed; ++v)
              sums[i][v] = AddProducts(sums[i][v], LoadWords(in[i] + at + v * kVectorBytes), right[v]);
          }
        }
      }
      if constexpr (kShared) {
        for (int64_t line = 0; line < p.next_lines; ++line, next += kLineBytes)
          __builtin_prefetch(next, 0, kLevel2);
      }
    }
  }
  if (p.sums != nullptr) return StoreAsSums(p, first, sums);
  StoreAs<true>(p, first, sums);
}

// The tile of the last `pixels` < kPixels.
template <int kPixels, int kUsed, bool kShared>
inline void LastTile(const QuantizedPixels& p, int64_t first, int64_t pixels) {
  if constexpr (kPixels > 1) {
    if (pixels < kPixels - 1) return LastTile<kPixels - 1, kUsed, kShared>(p, first, pixels);
    Tile<kPixels - 1, kUsed, kShared>(p, first);
  }
}

template <int kUsed, bool kShared>
inline void ConvolveTiles(const QuantizedPixels& p) {
  int64_t first = 0;
  if (p.tile_pixels == kTilePixels) {
    for (; first + kTilePixels <= p.count; first += kTilePixels) Tile<kTilePixels, kUsed, kShared>(p, first);
  } else {
    for (; first + p.tile_pixels <= p.count; first += p.tile_pixels)
      LastTile<kTilePixels, kUsed, kShared>(p, first, p.tile_pixels);
  }
  if (first < p.count) LastTile<kTilePixels, kUsed, kShared>(p, first, p.count - first);
}

// The steps of `pixels`, whose sums are given.
template <bool kBounded, int kUsed>
inline void StoreGiven(const QuantizedPixels& pixels, const int32_t* given) {
  const auto store = [&](int64_t first, auto& sums) {
    for (auto& pixel : sums) {
      for (int v = 0; v < kUsed; ++v) pixel[v] = LoadSums(given + v * kWidth);
      given += kTileLanes;
    }
    StoreAs<kBounded>(pixels, first, sums);
  };
  constexpr int kTogether = 4 / kUsed;
  int64_t first = 0;
  for (; first + kTogether <= pixels.count; first += kTogether) {
    Sums sums[kTogether][kUsed];
    store(first, sums);
  }
  for (; first < pixels.count; ++first) {
    Sums sums[1][kUsed];
    store(first, sums);
  }
}

template <int kUsed, bool kShared>
inline void Convolve(const QuantizedPixels& p) {
  if (p.bounded || p.reals != nullptr || p.sums != nullptr) return ConvolveTiles<kUsed, kShared>(p);
  constexpr int64_t kPiece = 2 * kTilePixels;
  alignas(64) int32_t sums[kPiece * kTileLanes];
  QuantizedPixels piece = p;
  for (int64_t first = 0; first < p.count; first += kPiece) {
    piece.count = p.count - first < kPiece ? p.count - first : kPiece;
    piece.sums = sums;
    ConvolveTiles<kUsed, kShared>(piece);
    piece.sums = nullptr;
    StoreGiven<false, kUsed>(piece, sums);
    piece.Advance(piece.count, kTileLanes);
  }
}

}  // namespace

void ConvolveDense(const QuantizedPixels& pixels) {
#if defined(TILESMITH_ISA_avx512)
  if (pixels.channels <= kWidth) return Convolve<1, true>(pixels);
#endif
  Convolve<kVectors, true>(pixels);
}
void ConvolveDepthwise(const QuantizedPixels& pixels) { Convolve<kVectors, false>(pixels); }

void StoreSums(const QuantizedPixels& pixels, const int32_t* given) {
  if (!pixels.bounded) return StoreGiven<false, kVectors>(pixels, given);
#if defined(TILESMITH_ISA_avx512)
  if (pixels.channels <= kWidth) return StoreGiven<true, 1>(pixels, given);
#endif
  StoreGiven<true, kVectors>(pixels, given);
}

}  // namespace tilesmith::TILESMITH_ISA
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
