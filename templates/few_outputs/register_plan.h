// Which vector register holds what in the few_outputs kernel. A plan that needs more registers than the CPU
// has makes the config invalid before a byte is emitted.
#pragma once

#include <algorithm>

#include "templates/few_outputs/schedule.h"

namespace tilesmith::few_outputs {

//   [0, accumulators)          output tile, vector v of row r of output o at (o * rows + r) * vectors + v
//   [first_input, + inputs)    vectors of an input row, used in turn
//   [first_weight, + weights)  the weights of one input row and kernel column, one in all lanes of each
//   mask                       AVX2's, of a vector that is not full
// Before and after the taps [first_input, mask) is scratch.
struct RegisterPlan {
  int accumulators = 0;
  int first_input = 0, inputs = 0;
  int first_weight = 0, weights = 0;
  int mask = 0;
  bool fits = false;
};

struct TileSize {
  int64_t outputs, rows, vectors;
};

// Scratch registers that the epilogue needs beside the accumulators.
constexpr int kEpilogueScratch = 2;

inline RegisterPlan PlanRegisters(const Schedule& g, const TileSize& tile) {
  constexpr int kMaxInputs = 6;  // more loads in flight than any CPU can use
  const bool wide = g.config.lanes == 16;
  RegisterPlan plan;
  size_t most_taps = 0;
  for (const InputRow& row : InputRowsOf(g.workload, tile.rows))
    most_taps = std::max(most_taps, row.taps.size());
  plan.accumulators = static_cast<int>(tile.outputs * tile.rows * tile.vectors);
  plan.weights = static_cast<int>(most_taps * tile.outputs);
  plan.mask = wide ? 32 : 15;
  plan.first_weight = plan.mask - plan.weights;
  plan.first_input = plan.accumulators;
  plan.inputs = std::min(plan.first_weight - plan.first_input, kMaxInputs);
  plan.fits = plan.inputs >= 1 && plan.accumulators + kEpilogueScratch <= plan.mask;
  return plan;
}

}  // namespace tilesmith::few_outputs
