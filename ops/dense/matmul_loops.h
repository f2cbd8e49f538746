// Inner loops of matrix products and attention, one build per instruction set. All strides are in floats.
// Original.
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"
#include "ops/base/activation.h"

namespace tilesmith {

// Columns that are computed together, and rows of a panel of sums at most.
constexpr int64_t kPanelColumns = 32;
constexpr int64_t kPanelRows = 96;
// Terms that are added up at a time: 32 KiB of the right side, which then serve all rows from the cache.
constexpr int64_t kPanelTerms = 256;

// sums[r * kPanelColumns + c] += sum over k < terms of a[r * a_row + k * a_term] * b[k * b_term + c], c <
// kPanelColumns
struct PanelProduct {
  const float* a = nullptr;
  int64_t a_row = 0, a_term = 0;
  const float* b = nullptr;  // kPanelColumns floats for each term
  int64_t b_term = 0;
  int64_t rows = 0;  // <= kPanelRows
  int64_t terms = 0;
  float* sums = nullptr;
};
TILESMITH_DECLARE_ISA(void AddPanelProduct(const PanelProduct& product))

// out[r * out_row + c * out_column] = act(scale * sums[r * kPanelColumns + c] + bias[c]), c < columns
struct PanelResult {
  const float* sums = nullptr;
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
