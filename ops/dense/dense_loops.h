// Inner loops of dense layers, one build per instruction set.
#pragma once

#include "layouts/base/isa_dispatch.h"
#include "ops/base/activation.h"

namespace tilesmith {

// Columns of a packed weight panel: panel p holds weights[k][p * 32 .. p * 32 + 32) for every k, zero-padded.
constexpr int64_t kPanelColumns = 32;
// Rows of one GemmPanel call at most.
constexpr int64_t kPanelRows = 48;

struct GemmPanelArgs {
  const float* const* rows;  // row_count input rows of k floats
  float* const* outputs;     // row_count output rows, at the panel's first column
  const float* panel;
  const float* bias;  // kPanelColumns floats
  int64_t row_count;  // <= kPanelRows
  int64_t columns;    // <= kPanelColumns, how many are written
  int64_t k;
};

// outputs[r][c] = act(sum_k rows[r][k] * panel[k][c] + bias[c])
TILESMITH_DECLARE_ISA(void GemmPanel(const GemmPanelArgs& args, Activation activation))

}  // namespace tilesmith
