// A price on the memory of packed weights: with one, a solver trades time for memory.
//
// The solution at a price is the fastest of all plans whose weights are no larger than its own. Source:
// Everett, Generalized Lagrange multiplier method, Operations Research 11 (1963).
#pragma once

#include "graph_tuner/plan/packed_weights.h"
#include "layouts/base/target.h"
#include "tuner/records/record.h"

namespace tilesmith {

struct WeightPrice {
  double seconds_per_byte = 0;
  Target cpu = {};
  double Of(const Record& record) const;  // in seconds
};

}  // namespace tilesmith
