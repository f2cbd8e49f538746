#include "tuner/best_records.h"

#include <fmt/format.h>

#include <unordered_map>

namespace tilesmith {
namespace {

bool Better(const Record& a, const Record& b) {
  if (a.early_stopped != b.early_stopped) return b.early_stopped;
  return a.seconds < b.seconds;
}

}  // namespace

std::string RecordKey(const Record& record) {
  const MeasureConditions& c = record.conditions;
  return fmt::format("{}|{}|{}|{} {} {}", WorkloadToString(record.workload), record.template_name,
                     record.config.ToString(), c.threads, c.pinned, c.cold_weights);
}

BestByWorkload BestRecords(std::span<const Record> records, const Target& target,
                           const MeasureConditions* conditions) {
  std::unordered_map<std::string, const Record*> current;  // by config
  for (const Record& record : records) {
    if (record.status != TrialStatus::kOk || !SameMachine(record.target, target)) continue;
    if (conditions != nullptr && record.conditions != *conditions) continue;
    const Record*& known = current[RecordKey(record)];
    if (known == nullptr || known->early_stopped || !record.early_stopped) known = &record;
  }
  BestByWorkload best;
  // In the order of the log, so that ties do not depend on hashing.
  for (const Record& record : records) {
    const auto found = current.find(RecordKey(record));
    if (found == current.end() || found->second != &record) continue;
    BestByLayouts& pairs = best[WorkloadToString(record.workload)];
    const auto [place, added] = pairs.try_emplace(record.layouts, record);
    if (!added && Better(record, place->second)) place->second = record;
  }
  return best;
}

}  // namespace tilesmith
