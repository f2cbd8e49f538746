// Which vector register holds what in the grouped kernel. A plan that needs more registers than the CPU has
// makes the config invalid before a byte is emitted.
#pragma once

#include <algorithm>

#include "templates/grouped/geometry.h"

namespace tilesmith::grouped {

//   [0, accumulators)          output tile, position w of row r at r * positions + w
//   [first_input, + inputs)    input elements, spread over their groups' lanes; used in turn
//   [first_weight, + weights)  weights of one input row and channel
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
inline RegisterPlan PlanRegisters(const Geometry& g, int positions, int64_t rows) {
  constexpr int kMostInputs = 6;            // more loads in flight than any CPU can use
  const bool wide = g.vector_floats == 16;  // AVX-512, which has mask registers of its own
  const int registers = wide ? 32 : 16;
  RegisterPlan plan;
  const bool masked = !wide && g.partial_lanes > 0 && (g.in_layout.is_nhwc() || g.out_layout.is_nhwc());
  plan.accumulators = static_cast<int>(rows) * positions;
  size_t most_taps = 0;
  for (const InputRow& row : InputRowsOf(g.workload, rows)) most_taps = std::max(most_taps, row.taps.size());
  plan.weights = g.config.held_weights ? static_cast<int>(most_taps * g.workload.kw) : 0;
  plan.mask = registers - (masked ? 1 : 0);
  plan.index = plan.mask - (g.spread == Spread::kIndex ? 1 : 0);
  plan.first_weight = plan.index - plan.weights;
  plan.first_input = plan.accumulators;
  plan.inputs = std::min(plan.first_weight - plan.first_input, kMostInputs);
  plan.fits = plan.inputs >= 1 && plan.accumulators + kEpilogueScratch <= plan.mask;
  return plan;
}

}  // namespace tilesmith::grouped
