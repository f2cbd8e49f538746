#include "tuner/records/best_records.h"

#include "tuner/records/record_groups.h"

namespace tilesmith {

BestByWorkload BestRecords(std::span<const Record> records, const Target& target,
                           const MeasureConditions* conditions) {
  BestByWorkload best;
  // In the order of the log, so that ties do not depend on hashing.
  for (const Record* record : StandingRecords(records)) {
    if (!SameMachine(record->target, target)) continue;
    if (conditions != nullptr && record->conditions != *conditions) continue;
    BestByLayouts& pairs = best[WorkloadToString(record->workload)];
    const auto [place, added] = pairs.try_emplace(record->layouts, *record);
    if (!added && IsBetterRecord(*record, place->second)) place->second = *record;
  }
  return best;
}

}  // namespace tilesmith
