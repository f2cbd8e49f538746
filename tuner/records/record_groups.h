// Many records sorted out: which count, and which belong together.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tuner/records/record.h"
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

// From a log to candidates: the best schedule of each workload for each pair of layouts.
//
// By canonical workload, then by layout pair, whatever the template.
using BestByLayouts = std::map<LayoutPair, Record>;
using BestByWorkload = std::map<std::string, BestByLayouts>;

// Records that failed or come from another machine are ignored, as are those of other conditions when
// `conditions` is given. Of several records of one config the one that stands counts; among configs,
// IsBetterRecord chooses (record_groups.h says both).
BestByWorkload BestRecords(std::span<const Record> records, const Target& target,
                           const MeasureConditions* conditions = nullptr);

// A log cut down to what is still of use.
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
