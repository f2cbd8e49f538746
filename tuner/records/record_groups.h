// Many records sorted out: which count, and which belong together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tuner/records/record_key.h"

namespace tilesmith {

// The record that counts of every config, in the order of the log. The last one does, since it was taken with
// more care (re-timed beside the other good ones), but a full measurement is never replaced by an
// early-stopped one; a later crash, timeout or wrong answer takes the config out. Configs are told apart by
// their RecordKey: the same one on another machine or under other conditions is another config.
std::vector<const Record*> StandingRecords(std::span<const Record> records);

// The records of one task (TaskKey).
struct RecordGroup {
  Target target;  // of its first record
  ConvWorkload workload;
  MeasureConditions conditions;
  std::vector<const Record*> records;  // in their order before
  TaskKey key() const { return {target, workload, conditions}; }
};

// Groups of one machine stay together; machines, then workloads, in the order of their first records.
std::vector<RecordGroup> GroupRecords(std::span<const Record* const> records);

std::vector<const Record*> PointersTo(std::span<const Record> records);

// Which of two configs' records to believe in: a full measurement beats an early-stopped one, then the lower
// time wins. What was timed once only is flattered by luck, and by the state the machine was in back then: it
// has to be 5 % faster than what was timed again beside its rivals.
bool IsBetterRecord(const Record& a, const Record& b);

// Machines with how many records each has, in the order of their first records.
struct TargetCount {
  Target target;
  int64_t records = 0;
};
void CountTarget(const Target& target, std::vector<TargetCount>& counts);
std::vector<TargetCount> CountTargets(std::span<const Record> records);

}  // namespace tilesmith
