#include "tuner/records/log_stats.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tilesmith {
namespace {

constexpr double kWithin5 = 1.05, kWithin2 = 1.02;

TaskStats StatsOfGroup(const RecordGroup& group, const std::vector<const Record*>& standing) {
  TaskStats stats;
  stats.target = group.target;
  stats.workload = group.workload;
  stats.conditions = group.conditions;
  stats.records = static_cast<int64_t>(group.records.size());
  stats.ok = static_cast<int64_t>(standing.size());
  const auto best = std::min_element(standing.begin(), standing.end(),
                                     [](const Record* a, const Record* b) { return IsBetterRecord(*a, *b); });
  if (best != standing.end()) stats.best = **best;

  std::unordered_map<ScheduleKey, double, KeyHash> seconds;  // of the configs that stand
  for (const Record* record : standing) seconds[ScheduleKey(*record)] = record->seconds;
  std::unordered_set<ScheduleKey, KeyHash> seen;
  for (const Record* record : group.records) {
    if (record->status != TrialStatus::kOk) ++stats.failures[record->status];
    const ScheduleKey schedule(*record);
    if (!seen.insert(schedule).second) continue;
    ++stats.trials;
    ++stats.templates[record->template_name];
    if (record->purpose == kPurposeLayouts) ++stats.layouts_purpose;
    if (!stats.best) continue;
    if (record->layouts != stats.best->layouts) ++stats.other_layouts;
    const auto known = seconds.find(schedule);
    if (known == seconds.end()) continue;
    if (!stats.until_5_percent && known->second <= kWithin5 * stats.best->seconds)
      stats.until_5_percent = stats.trials;
    if (!stats.until_2_percent && known->second <= kWithin2 * stats.best->seconds)
      stats.until_2_percent = stats.trials;
  }
  return stats;
}

}  // namespace

std::vector<TaskStats> StatsOf(std::span<const Record> records) {
  const std::vector<RecordGroup> groups = GroupRecords(PointersTo(records));
  const std::vector<RecordGroup> standing = GroupRecords(StandingRecords(records));
  std::vector<TaskStats> stats;
  for (const RecordGroup& group : groups) {
    const auto found = std::find_if(standing.begin(), standing.end(),
                                    [&](const RecordGroup& other) { return other.key() == group.key(); });
    stats.push_back(
        StatsOfGroup(group, found == standing.end() ? std::vector<const Record*>() : found->records));
  }
  return stats;
}

TimeSpan SpanOf(std::span<const Record> records) {
  TimeSpan span;
  for (const Record& record : records) {
    if (record.time.empty()) continue;
    if (span.first.empty() || record.time < span.first) span.first = record.time;
    span.last = std::max(span.last, record.time);
  }
  return span;
}

}  // namespace tilesmith
