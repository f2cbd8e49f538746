// Inner loops of matrix products and attention, one build per instruction set. All strides are in floats.
// Original.
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"
#include "ops/base/activation.h"

namespace tilesmith {

// A panel of sums: what a task of a product computes. The default one, which attention always uses, is
// kPanelColumns wide and kPanelRows high, and adds up kPanelTerms terms at a time: 32 KiB of the right
// side, which then serve all rows from the cache.
constexpr int64_t kPanelColumns = 32;
constexpr int64_t kPanelRows = 96;
constexpr int64_t kPanelTerms = 256;
// No panel is wider than this.
constexpr int64_t kMaxPanelColumns = 128;

// Register tiles: rows by vectors of columns, all of which stay in registers beside a row of the right side
// and one element of the left. The most rows of so many vectors, in 1..kMaxTileVectors, that the registers
// of an instruction set with vectors of `vector_floats` have room for. Always inlined, so that *_isa.cc files
// may call it.
constexpr int kMaxTileVectors = 4;
[[gnu::always_inline]] constexpr int MostTileRows(int vector_floats, int vectors) {
  constexpr int kMax = 14;
  // Without fused multiplication and addition products need registers too.
  const int registers = vector_floats == 16 ? 32 : vector_floats == 8 ? 16 : 11;
  const int rows = (registers - 1 - vectors) / vectors;
  return rows < kMax ? rows : kMax;
}
constexpr int kDefaultTileVectors = 2;
[[gnu::always_inline]] constexpr int DefaultTileRows(int vector_floats) {
  return vector_floats == 16 ? 12 : MostTileRows(vector_floats, kDefaultTileVectors);
}

// When a block is copied into the cache: where that pays by experience, only where the loops cannot read it
// where it is, or always.
enum class Packing { kWhereItPays = 0, kWhereNeeded = 1, kAlways = 2 };

// sums[r * sums_row + c] += (or, where `fresh`, =) sum over k < terms of a[r * a_row + k * a_term] * b[k *
// b_term + c], for c < `columns` rounded up to whole vectors. Where b is `tiled`, its register tiles lie one
// after the other, each with its terms side by side: b[first * terms + k * width + c - first] in the tile of
// columns [first, first + width).
struct PanelProduct {
  const float* a = nullptr;
  int64_t a_row = 0, a_term = 0;
  const float* b = nullptr;
  int64_t b_term = 0;
  bool tiled = false;
  int64_t rows = 0, columns = 0;
  int64_t terms = 0;
  float* sums = nullptr;
  int64_t sums_row = kPanelColumns;
  bool fresh = false;  // nothing was summed up before: `sums` are not read
  int tile_rows = 0;   // 1..MostTileRows; 0: DefaultTileRows
  int tile_vectors = kDefaultTileVectors;
};
TILESMITH_DECLARE_ISA(void AddPanelProduct(const PanelProduct& product))

// out[r * out_row + c * out_column] = act(scale * sums[r * sums_row + c] + bias[c]), c < columns <=
// kMaxPanelColumns
struct PanelResult {
  const float* sums = nullptr;
  int64_t sums_row = kPanelColumns;
  float* out = nullptr;
  int64_t out_row = 0, out_column = 1;
  int64_t rows = 0, columns = 0;
  float scale = 1;
  const float* bias = nullptr;  // null: none
  Activation activation = {};
};
TILESMITH_DECLARE_ISA(void StorePanel(const PanelResult& result))

// One more block of the scores of one row, and what is known of those before it: the largest, and the sum of
// exp(score - largest). scores[i] becomes exp(scores[i] + mask[i * mask_step] - largest); returns by how much
// what was summed up before must be multiplied, since the largest is another now. Rows whose scores are all
// -infinity so far have a largest of -infinity.
struct SoftmaxState {
  float largest = 0, sum = 0;
};
struct ScoreBlock {
  float* scores = nullptr;
  const float* mask = nullptr;  // null: none
  int64_t mask_step = 0;        // 0 or 1
  int64_t count = 0;
};
TILESMITH_DECLARE_ISA(float AddScores(const ScoreBlock& block, SoftmaxState& state))
// values[i] *= factor
TILESMITH_DECLARE_ISA(void ScaleRow(float* values, int64_t count, float factor))

}  // namespace tilesmith
