#include "ops/kernels/tile_products.h"

#ifdef TILESMITH_X86
#include <immintrin.h>
#endif

#include <algorithm>

#include "layouts/base/check.h"

namespace tilesmith {
#ifdef TILESMITH_X86
namespace {

constexpr int64_t kWordBytes = 4;
constexpr int64_t kTileBytes = kTileRows * kWordBytes;  // of a row of a tile of weights or sums

// What LDTILECFG reads.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Tiles 0 to 3 are sums, 4 and 5 positions' windows, 6 and 7 weights of channels. kRows by kVectors of each are
// used, positions from `first` and from `second` on.
template <TileNumbers kNumbers, int kRows, int kVectors>
void MultiplyBlock(const TileProducts& p, int64_t first, int64_t second) {
  const int64_t weights_pitch = p.lanes * kWordBytes, step_bytes = p.step_words * kWordBytes;
  const std::byte* const above = p.input + first * p.position_bytes;
  const std::byte* const below = p.input + second * p.position_bytes;
  const auto* const bias = static_cast<const std::byte*>(p.bias);
  // All rows of a sum begin as the same one.
  _tile_loadd(0, bias, 0);
  if constexpr (kVectors == 2) _tile_loadd(1, bias + kTileBytes, 0);
  if constexpr (kRows == 2) _tile_loadd(2, bias, 0);
  if constexpr (kRows == 2 && kVectors == 2) _tile_loadd(3, bias + kTileBytes, 0);
  const std::byte* weights = p.weights;
  for (int64_t run = 0; run < p.run_count; ++run) {
    int64_t at = p.runs[run];
    for (int64_t step = 0; step < p.steps; ++step, at += step_bytes) {
      _tile_loadd(4, above + at, p.position_bytes);
      _tile_loadd(6, weights, weights_pitch);
      if constexpr (kVectors == 2) _tile_loadd(7, weights + kTileBytes, weights_pitch);
      if constexpr (kRows == 2) _tile_loadd(5, below + at, p.position_bytes);
      if constexpr (kNumbers == TileNumbers::kBytes) {
        _tile_dpbusd(0, 4, 6);
        if constexpr (kVectors == 2) _tile_dpbusd(1, 4, 7);
        if constexpr (kRows == 2) _tile_dpbusd(2, 5, 6);
        if constexpr (kRows == 2 && kVectors == 2) _tile_dpbusd(3, 5, 7);
      } else {
        _tile_dpbf16ps(0, 4, 6);
        if constexpr (kVectors == 2) _tile_dpbf16ps(1, 4, 7);
        if constexpr (kRows == 2) _tile_dpbf16ps(2, 5, 6);
        if constexpr (kRows == 2 && kVectors == 2) _tile_dpbf16ps(3, 5, 7);
      }
      weights += p.step_words * weights_pitch;
    }
  }
  const int64_t sums_pitch = p.lanes * kWordBytes;
  std::byte* const upper = p.sums + first * sums_pitch;
  std::byte* const lower = p.sums + second * sums_pitch;
  _tile_stored(0, upper, sums_pitch);
  if constexpr (kVectors == 2) _tile_stored(1, upper + kTileBytes, sums_pitch);
  if constexpr (kRows == 2) _tile_stored(2, lower, sums_pitch);
  if constexpr (kRows == 2 && kVectors == 2) _tile_stored(3, lower + kTileBytes, sums_pitch);
}

// The last tiles of positions begin earlier than the others end, where there are no whole ones left.
template <TileNumbers kNumbers, int kVectors>
void MultiplyAll(const TileProducts& p) {
  const int64_t last = std::max<int64_t>(p.positions - kTileRows, 0);
  int64_t first = 0;
  for (; first + kTileRows < p.positions; first += 2 * kTileRows)
    MultiplyBlock<kNumbers, 2, kVectors>(p, std::min(first, last), std::min(first + kTileRows, last));
  if (first < p.positions) MultiplyBlock<kNumbers, 1, kVectors>(p, std::min(first, last), 0);
}

}  // namespace

TileUnit::~TileUnit() {
  if (rows_ > 0) asm volatile("tilerelease");
}

void TileUnit::Configure(int64_t step_words, int64_t rows) {
  if (step_words == step_words_ && rows == rows_) return;
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    const bool windows = tile == 4 || tile == 5, weights = tile >= 6;
    config.row_bytes[tile] = static_cast<uint16_t>(windows ? step_words * kWordBytes : kTileBytes);
    config.rows[tile] = static_cast<uint8_t>(weights ? step_words : rows);
  }
  // The intrinsic does not say that it reads the config.
  asm volatile("ldtilecfg %0" ::"m"(config));
  step_words_ = step_words;
  rows_ = rows;
}

void TileUnit::Multiply(TileNumbers numbers, const TileProducts& p) {
  TILESMITH_CHECK(p.positions > 0 && p.step_words > 0 && p.step_words <= kTileWords);
  asm volatile("" ::: "memory");  // nor do those that load say that they read what was stored before
  Configure(p.step_words, std::min(p.positions, kTileRows));
  const bool two = p.used_lanes > kTileRows;
  if (numbers == TileNumbers::kBytes) {
    two ? MultiplyAll<TileNumbers::kBytes, 2>(p) : MultiplyAll<TileNumbers::kBytes, 1>(p);
  } else {
    two ? MultiplyAll<TileNumbers::kBf16, 2>(p) : MultiplyAll<TileNumbers::kBf16, 1>(p);
  }
}
#else
TileUnit::~TileUnit() = default;

void TileUnit::Multiply(TileNumbers, const TileProducts&) { TILESMITH_CHECK(false, "no AMX"); }
#endif

}  // namespace tilesmith
