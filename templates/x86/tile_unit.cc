#include "templates/x86/tile_unit.h"

#include "layouts/base/check.h"

namespace tilesmith {
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

}  // namespace tilesmith
