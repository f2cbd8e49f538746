// A log cut down to what a graph tuner needs.
#pragma once

#include <span>
#include <vector>

#include "tuner/record.h"

namespace tilesmith {

// For each machine, workload, conditions and pair of layouts, of the records that stand (record_groups.h):
// the `top` best, and beside them every record that some limit on accuracy makes the best, that is, of each
// template those that no faster one of it matches in accuracy. In the order of the log. So BestRecords of
// the result equals BestRecords of `records`, for every machine, and for records that are accepted by any
// limits. Precondition: top >= 1.
std::vector<const Record*> Distill(std::span<const Record> records, int64_t top);

}  // namespace tilesmith
