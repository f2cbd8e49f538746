#include "tuner/records/record_groups.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace tilesmith {
namespace {

// Failures that a config brings about itself: what crashed or was wrong later is not to be run.
bool IsDisproof(TrialStatus status) {
  return status == TrialStatus::kWrongAnswer || status == TrialStatus::kRunCrash ||
         status == TrialStatus::kRunTimeout;
}

}  // namespace

std::vector<const Record*> StandingRecords(std::span<const Record> records) {
  // By any record of the config, the one that counts.
  std::unordered_map<RecordKey, const Record*, KeyHash> current;
  current.reserve(records.size());
  for (const Record& record : records) {
    if (IsDisproof(record.status)) current.erase(RecordKey(record));
    if (record.status != TrialStatus::kOk) continue;
    const Record*& known = current[RecordKey(record)];
    if (known == nullptr || known->early_stopped || !record.early_stopped) known = &record;
  }
  std::vector<const Record*> standing;
  standing.reserve(current.size());
  for (const auto& [key, record] : current) standing.push_back(record);
  std::sort(standing.begin(), standing.end());  // of one array: the order of the log
  return standing;
}

std::vector<RecordGroup> GroupRecords(std::span<const Record* const> records) {
  std::vector<RecordGroup> groups;
  std::unordered_map<TaskKey, size_t, KeyHash> index;
  for (const Record* record : records) {
    const auto [found, added] = index.try_emplace(TaskKey(*record), groups.size());
    if (added) groups.push_back({record->target, record->workload, record->conditions, {}});
    groups[found->second].records.push_back(record);
  }
  // Ranks by first appearance.
  std::vector<Target> machines;
  std::unordered_map<std::string, size_t> workloads;
  std::vector<std::tuple<size_t, size_t, size_t>> order;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto machine = std::find_if(machines.begin(), machines.end(), [&](const Target& known) {
      return SameMachine(known, groups[i].target);
    });
    const auto rank = static_cast<size_t>(machine - machines.begin());
    if (machine == machines.end()) machines.push_back(groups[i].target);
    const size_t workload =
        workloads.try_emplace(WorkloadToString(groups[i].workload), workloads.size()).first->second;
    order.emplace_back(rank, workload, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<RecordGroup> sorted;
  sorted.reserve(groups.size());
  for (const auto& [machine, workload, i] : order) sorted.push_back(std::move(groups[i]));
  return sorted;
}

std::vector<const Record*> PointersTo(std::span<const Record> records) {
  std::vector<const Record*> pointers;
  pointers.reserve(records.size());
  for (const Record& record : records) pointers.push_back(&record);
  return pointers;
}

bool IsBetterRecord(const Record& a, const Record& b) {
  constexpr double kOnceOnly = 1.05;
  if (a.early_stopped != b.early_stopped) return b.early_stopped;
  const auto seconds = [](const Record& r) {
    return r.purpose == kPurposeRetime ? r.seconds : kOnceOnly * r.seconds;
  };
  return seconds(a) < seconds(b);
}

void CountTarget(const Target& target, std::vector<TargetCount>& counts) {
  const auto known = std::find_if(counts.begin(), counts.end(), [&](const TargetCount& count) {
    return SameMachine(count.target, target);
  });
  if (known == counts.end()) {
    counts.push_back({target, 1});
  } else {
    ++known->records;
  }
}

std::vector<TargetCount> CountTargets(std::span<const Record> records) {
  std::vector<TargetCount> counts;
  for (const Record& record : records) CountTarget(record.target, counts);
  return counts;
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

namespace {

// `records` compete with each other, and are in the order of the log.
void KeepBest(std::vector<const Record*> records, const DistillOptions& options,
              std::vector<const Record*>& kept) {
  std::stable_sort(records.begin(), records.end(),
                   [](const Record* a, const Record* b) { return IsBetterRecord(*a, *b); });
  std::map<std::string_view, double> least_error;  // of the faster records of a template
  int64_t left = options.top;
  for (const Record* record : records) {
    const double error = record->error.value_or(std::numeric_limits<double>::infinity());
    const auto [known, first] = least_error.try_emplace(record->template_name, error);
    const bool more_accurate = first || error < known->second;
    known->second = std::min(known->second, error);
    if (left-- > 0 || (more_accurate && options.use == RecordUse::kPlanning)) kept.push_back(record);
  }
}

}  // namespace

std::vector<const Record*> Distill(std::span<const Record> records, const DistillOptions& options) {
  const bool for_tuning = options.use == RecordUse::kTuning;
  std::vector<const Record*> kept;
  for (const RecordGroup& group : GroupRecords(StandingRecords(records))) {
    std::map<std::pair<std::string_view, LayoutPair>, std::vector<const Record*>> rivals;
    for (const Record* record : group.records) {
      if (for_tuning && record->early_stopped) continue;
      const std::string_view of_template = for_tuning ? std::string_view(record->template_name) : "";
      rivals[{of_template, record->layouts}].push_back(record);
    }
    for (const auto& [kind, of_kind] : rivals) KeepBest(of_kind, options, kept);
  }
  if (!for_tuning) std::sort(kept.begin(), kept.end());  // of one array: the order of the log
  return kept;
}

}  // namespace tilesmith
