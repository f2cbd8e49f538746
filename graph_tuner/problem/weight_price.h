// A price on the memory of packed weights: with one, a solver trades time for memory.
//
// Winograd's and Strassen's transformed weights are up to seven times as large as plain ones. The solution at
// a price is the fastest of all plans whose weights are no larger than its own. Source: Everett, Generalized
// Lagrange multiplier method, Operations Research 11 (1963).
#pragma once

#include "graph_tuner/plan/plan.h"
#include "layouts/base/target.h"
#include "tuner/records/record.h"

namespace tilesmith {

// As the record's template estimates them (LoopFeatures::weight_bytes); of a plan those of all its convs.
double PackedWeightBytes(const Record& record, const Target& cpu);
double PackedWeightBytes(const Plan& plan, const Target& cpu);

struct WeightPrice {
  double seconds_per_byte = 0;
  Target cpu = {};
  double Of(const Record& record) const;  // in seconds
};

}  // namespace tilesmith
