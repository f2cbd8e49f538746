// Records of a conv alone, for networks that compute more along with it: tuners that know no post-ops, as
// AutoTVM did, measure the conv by itself.
#pragma once

#include <span>
#include <vector>

#include "tuner/records/record.h"

namespace tilesmith {

// For each of `workloads` that is the record's conv but for its post-ops: the record as if it were of that
// workload, at the times of its own, with the config that the template accepts there nearest to its own, and
// `detail` saying so. Fused workloads, and records of unknown templates, give none.
std::vector<Record> AdoptPostOps(const Record& record, std::span<const ConvWorkload> workloads);

}  // namespace tilesmith
