#include "tuner/best_records.h"

#include <fmt/format.h>

#include <unordered_map>

namespace tilesmith {
namespace {

// Failures that a config brings about itself: what crashed or was wrong later is not to be run.
bool IsDisproof(TrialStatus status) {
  return status == TrialStatus::kWrongAnswer || status == TrialStatus::kRunCrash ||
         status == TrialStatus::kRunTimeout;
}

}  // namespace

bool IsBetterRecord(const Record& a, const Record& b) {
  constexpr double kOnceOnly = 1.05;
  if (a.early_stopped != b.early_stopped) return b.early_stopped;
  const auto seconds = [](const Record& r) {
    return r.purpose == kPurposeRetime ? r.seconds : kOnceOnly * r.seconds;
  };
  return seconds(a) < seconds(b);
}

std::string RecordKey(const Record& record) {
  const MeasureConditions& c = record.conditions;
  return fmt::format("{}|{}|{}|{} {} {}", WorkloadToString(record.workload), record.template_name,
                     record.config.ToString(), c.threads, c.pinned, c.cold_weights);
}

BestByWorkload BestRecords(std::span<const Record> records, const Target& target,
                           const MeasureConditions* conditions) {
  std::unordered_map<std::string, const Record*> current;  // by config
  for (const Record& record : records) {
    if (!SameMachine(record.target, target)) continue;
    if (conditions != nullptr && record.conditions != *conditions) continue;
    if (IsDisproof(record.status)) current.erase(RecordKey(record));
    if (record.status != TrialStatus::kOk) continue;
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
    if (!added && IsBetterRecord(record, place->second)) place->second = record;
  }
  return best;
}

}  // namespace tilesmith
