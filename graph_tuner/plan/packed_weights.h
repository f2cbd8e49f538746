// The memory of packed weights. Winograd's and Strassen's are up to seven times as large as plain ones.
#pragma once

#include "graph_tuner/plan/plan.h"
#include "layouts/base/target.h"
#include "tuner/records/record.h"

namespace tilesmith {

// As the record's template estimates them (LoopFeatures::weight_bytes); of a plan those of all its convs.
double PackedWeightBytes(const Record& record, const Target& cpu);
double PackedWeightBytes(const Plan& plan, const Target& cpu);

}  // namespace tilesmith
