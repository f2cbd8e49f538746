#include "ops/kernels/tile_products.h"

#include <algorithm>

#include "layouts/base/check.h"

namespace tilesmith {
#ifdef TILESMITH_X86
namespace {

constexpr int64_t kWordBytes = 4;
constexpr int64_t kTileRowBytes = kTileRows * kWordBytes;  // of a row of a tile of weights or sums

// What LDTILECFG reads.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Not the compiler's intrinsics, whose tiles are names, not numbers that templates could compute.
template <int kTile>
[[gnu::always_inline]] inline void LoadTile(const void* from, int64_t pitch) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(pitch), "i"(kTile));
}
template <int kTile>
[[gnu::always_inline]] inline void StoreTile(void* to, int64_t pitch) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(pitch), "i"(kTile) : "memory");
}
template <int kSum, int kWindows, int kWeights>
[[gnu::always_inline]] inline void AddByteProducts() {
  asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kWindows), "i"(kWeights));
}

template <int kRows, int kVectors>
void MultiplyBytesOf(const TileProducts& p) {
  constexpr int kWindows = kFirstWindowTile, kWeights = kFirstWeightTile;
  const int64_t lanes_pitch = p.lanes * kWordBytes, step_bytes = p.step_words * kWordBytes;
  const std::byte* const lower_input = p.input + SecondTile(p.positions) * p.position_bytes;
  // All rows of a sum begin as the same one.
  LoadTile<0>(p.bias, 0);
  if constexpr (kVectors == 2) LoadTile<1>(p.bias + kTileRows, 0);
  if constexpr (kRows == 2) LoadTile<2>(p.bias, 0);
  if constexpr (kRows == 2 && kVectors == 2) LoadTile<3>(p.bias + kTileRows, 0);
  const std::byte* weights = p.weights;
  for (int64_t run = 0; run < p.run_count; ++run) {
    int64_t at = p.runs[run];
    for (int64_t step = 0; step < p.steps; ++step, at += step_bytes) {
      LoadTile<kWeights>(weights, lanes_pitch);
      if constexpr (kVectors == 2) LoadTile<kWeights + 1>(weights + kTileRowBytes, lanes_pitch);
      LoadTile<kWindows>(p.input + at, p.position_bytes);
      AddByteProducts<0, kWindows, kWeights>();
      if constexpr (kVectors == 2) AddByteProducts<1, kWindows, kWeights + 1>();
      if constexpr (kRows == 2) {
        LoadTile<kWindows + 1>(lower_input + at, p.position_bytes);
        AddByteProducts<2, kWindows + 1, kWeights>();
        if constexpr (kVectors == 2) AddByteProducts<3, kWindows + 1, kWeights + 1>();
      }
      weights += p.step_words * lanes_pitch;
    }
  }
  StoreTile<0>(p.sums, lanes_pitch);
  if constexpr (kVectors == 2) StoreTile<1>(p.sums + kTileRows, lanes_pitch);
  if constexpr (kRows == 2) {
    int32_t* const lower_sums = p.sums + SecondTile(p.positions) * p.lanes;
    StoreTile<2>(lower_sums, lanes_pitch);
    if constexpr (kVectors == 2) StoreTile<3>(lower_sums + kTileRows, lanes_pitch);
  }
}

}  // namespace

TileUnit::~TileUnit() {
  if (rows_ > 0) asm volatile("tilerelease");
}

void TileUnit::Configure(int64_t step_words, int64_t rows) {
  if (step_words == step_words_ && rows == rows_) return;
  TILESMITH_CHECK(step_words > 0 && step_words <= kTileWords && rows > 0 && rows <= kTileRows);
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    const bool weights = tile >= kFirstWeightTile, windows = tile >= kFirstWindowTile && !weights;
    config.row_bytes[tile] = static_cast<uint16_t>(windows ? step_words * kWordBytes : kTileRowBytes);
    config.rows[tile] = static_cast<uint8_t>(weights ? step_words : rows);
  }
  asm volatile("ldtilecfg %0" ::"m"(config));
  step_words_ = step_words;
  rows_ = rows;
}

void TileUnit::MultiplyBytes(const TileProducts& p) {
  TILESMITH_CHECK(p.positions > 0 && p.positions <= kMaxTilePositions);
  asm volatile("" ::: "memory");  // what loads tiles does not say that it reads what was stored before
  Configure(p.step_words, std::min(p.positions, kTileRows));
  const bool two_rows = p.positions > kTileRows;
  if (p.used_lanes > kTileRows) {
    two_rows ? MultiplyBytesOf<2, 2>(p) : MultiplyBytesOf<1, 2>(p);
  } else {
    two_rows ? MultiplyBytesOf<2, 1>(p) : MultiplyBytesOf<1, 1>(p);
  }
}
#else
TileUnit::~TileUnit() = default;

void TileUnit::Configure(int64_t, int64_t) { TILESMITH_CHECK(false, "no AMX"); }
void TileUnit::MultiplyBytes(const TileProducts&) { TILESMITH_CHECK(false, "no AMX"); }
#endif

}  // namespace tilesmith
