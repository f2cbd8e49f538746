#include "tuner/record_groups.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace tilesmith {
namespace {

void Mix(size_t& hash, size_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15u + (hash >> 29); }

size_t GroupHash(const Record& r) {
  const ConvWorkload& w = r.workload;
  size_t hash = std::hash<std::string_view>()(r.target.cpu_model);
  for (const int64_t value : {w.mb, w.g, w.ic, w.ih, w.iw, w.oc, w.oh, w.ow, w.kh, w.sh, w.ph, w.dh})
    Mix(hash, static_cast<size_t>(value));
  Mix(hash, static_cast<size_t>(r.conditions.threads) * 2 + (r.conditions.cold_weights ? 1 : 0));
  return hash;
}

bool SameGroup(const Record& a, const Record& b) {
  return a.workload == b.workload && a.conditions == b.conditions && SameMachine(a.target, b.target);
}

struct GroupHasher {
  size_t operator()(const Record* r) const { return GroupHash(*r); }
};
struct GroupEqual {
  bool operator()(const Record* a, const Record* b) const { return SameGroup(*a, *b); }
};

struct ConfigHasher {
  size_t operator()(const Record* r) const {
    size_t hash = GroupHash(*r);
    Mix(hash, std::hash<std::string_view>()(r->template_name));
    for (const auto& [name, value] : r->config.knobs()) Mix(hash, static_cast<size_t>(value));
    return hash;
  }
};
struct ConfigEqual {
  bool operator()(const Record* a, const Record* b) const {
    return a->config == b->config && a->template_name == b->template_name && SameGroup(*a, *b);
  }
};

// Failures that a config brings about itself: what crashed or was wrong later is not to be run.
bool IsDisproof(TrialStatus status) {
  return status == TrialStatus::kWrongAnswer || status == TrialStatus::kRunCrash ||
         status == TrialStatus::kRunTimeout;
}

}  // namespace

std::vector<const Record*> StandingRecords(std::span<const Record> records) {
  // By any record of the config, the one that counts.
  std::unordered_map<const Record*, const Record*, ConfigHasher, ConfigEqual> current;
  current.reserve(records.size());
  for (const Record& record : records) {
    if (IsDisproof(record.status)) current.erase(&record);
    if (record.status != TrialStatus::kOk) continue;
    const Record*& known = current[&record];
    if (known == nullptr || known->early_stopped || !record.early_stopped) known = &record;
  }
  std::vector<const Record*> standing;
  standing.reserve(current.size());
  for (const auto& [any, record] : current) standing.push_back(record);
  std::sort(standing.begin(), standing.end());  // of one array: the order of the log
  return standing;
}

std::vector<RecordGroup> GroupRecords(std::span<const Record* const> records) {
  std::vector<RecordGroup> groups;
  std::unordered_map<const Record*, size_t, GroupHasher, GroupEqual> index;
  for (const Record* record : records) {
    const auto [found, added] = index.try_emplace(record, groups.size());
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

std::string ScheduleText(const Record& record) {
  return record.template_name + " " + record.config.ToString();
}

}  // namespace tilesmith
