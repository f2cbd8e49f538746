// A log cut down to what is still of use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tuner/records/record.h"

namespace tilesmith {

enum class RecordUse {
  // For each pair of layouts the best records, and beside them every record that some limit on accuracy makes
  // the best, that is, of each template those that no faster one of it matches in accuracy. So BestRecords of
  // what is kept equals BestRecords of all, for every machine, and for records that are accepted by any
  // limits.
  kPlanning,
  // For each template and pair of layouts the best full measurements: where a later tuning starts.
  kTuning,
};

struct DistillOptions {
  RecordUse use = RecordUse::kPlanning;
  int64_t top = 1;  // of each pair; at least 1
};

// Those records of use that stand (record_groups.h), for each task on its own. In the order of the log;
// for tuning task by task, then by template and layouts.
std::vector<const Record*> Distill(std::span<const Record> records, const DistillOptions& options = {});

}  // namespace tilesmith
