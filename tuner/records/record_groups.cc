#include "tuner/records/record_groups.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

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

}  // namespace tilesmith
