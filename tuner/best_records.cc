#include "tuner/best_records.h"

#include <fmt/format.h>

#include "tuner/record_groups.h"

namespace tilesmith {

std::string RecordKey(const Record& record) {
  const MeasureConditions& c = record.conditions;
  return fmt::format("{}|{}|{}|{} {} {}", WorkloadToString(record.workload), record.template_name,
                     record.config.ToString(), c.threads, c.pinned, c.cold_weights);
}

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
