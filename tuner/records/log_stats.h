// A log tells how the tuning went.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tuner/records/record_groups.h"

namespace tilesmith {

struct TaskStats {
  Target target;
  ConvWorkload workload;
  MeasureConditions conditions;
  int64_t records = 0;
  int64_t trials = 0;                        // distinct configs; re-timing is none
  int64_t ok = 0;                            // configs that stand
  std::map<TrialStatus, int64_t> failures;   // records by status, but ok
  std::map<std::string, int64_t> templates;  // trials
  std::optional<Record> best;
  // Trials, in the order of the log, until one was at most 5% (2%) slower than the best turned out to be.
  std::optional<int64_t> until_5_percent, until_2_percent;
  int64_t other_layouts = 0;    // trials on other layouts than the best one's
  int64_t layouts_purpose = 0;  // trials that looked for a good config of a certain pair of layouts
};

// One for each group of GroupRecords, in its order.
std::vector<TaskStats> StatsOf(std::span<const Record> records);

struct TimeSpan {
  std::string first, last;  // "" without records
};
TimeSpan SpanOf(std::span<const Record> records);

}  // namespace tilesmith
