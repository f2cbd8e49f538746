// Which vector register holds what in the grouped kernel. A plan that needs more registers than the CPU has
// makes the config invalid before a byte is emitted.
#pragma once

#include <algorithm>

#include "templates/grouped/schedule.h"

namespace tilesmith::grouped {

//   [0, accumulators)          output tile, position w of row r of sum t at (t * rows + r) * positions + w
//   [first_input, + inputs)    input elements, spread over their groups' lanes: those of one input row, or
//                              used in turn
//   [first_weight, + weights)  weights of one input row and spread, or used in turn
//   index                      of the permute, when there is one
//   mask                       AVX2's mask of a last vector that is not full, when NHWC needs one
// Before and after the taps [first_input, mask) is scratch.
struct RegisterPlan {
  int accumulators = 0;
  int first_input = 0, inputs = 0;
  int first_weight = 0, weights = 0;
  int index = 0;
  int mask = 0;
  bool fits = false;
};

// Scratch registers that the epilogue needs beside the accumulators.
constexpr int kEpilogueScratch = 2;

// `positions` of a row, `rows` of them.
inline RegisterPlan PlanRegisters(const Schedule& g, int positions, int64_t rows) {
  constexpr int kMaxInTurn = 6;             // more loads in flight than any CPU can use
  const bool wide = g.vector_floats == 16;  // AVX-512, which has mask registers of its own
  const int registers = wide ? 32 : 16;
  RegisterPlan plan;
  const bool masked = !wide && g.partial_lanes > 0 && (g.in_layout.is_nhwc() || g.out_layout.is_nhwc());
  plan.mask = registers - (masked ? 1 : 0);
  plan.index = plan.mask - (g.spread == Spread::kIndex ? 1 : 0);
  plan.accumulators = static_cast<int>(rows * positions * g.config.sums);
  plan.first_input = plan.accumulators;
  if (g.config.hold == Hold::kInputs) {
    plan.inputs = static_cast<int>(InputColumnsOf(g.workload, {.width = positions}).size());
    plan.weights = std::min(plan.index - plan.first_input - plan.inputs, kMaxInTurn);
  } else {
    size_t most_taps = 0;
    for (const InputRow& row : InputRowsOf(g.workload, rows))
      most_taps = std::max(most_taps, row.taps.size());
    const auto weights = static_cast<int>(most_taps * g.workload.kw * g.config.sums);
    plan.weights = g.config.hold == Hold::kWeights ? weights : 0;
    plan.inputs = std::min(plan.index - plan.weights - plan.first_input, kMaxInTurn);
  }
  plan.first_weight = plan.index - plan.weights;
  plan.fits = plan.inputs >= 1 && (plan.weights >= 1 || g.config.hold == Hold::kNothing) &&
              plan.accumulators + kEpilogueScratch <= plan.mask;
  return plan;
}

}  // namespace tilesmith::grouped
