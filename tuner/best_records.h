// From a log to candidates: the best schedule of each workload for each pair of layouts.
#pragma once

#include <map>
#include <span>
#include <string>

#include "tuner/record.h"

namespace tilesmith {

// By canonical workload, then by layout pair, whatever the template.
using BestByLayouts = std::map<LayoutPair, Record>;
using BestByWorkload = std::map<std::string, BestByLayouts>;

// Which of two configs' records to believe in: a full measurement beats an early-stopped one, then the lower
// time wins. What was timed once only is flattered by luck, and by the state the machine was in back then: it
// has to be 5 % faster than what was timed again beside its rivals.
bool IsBetterRecord(const Record& a, const Record& b);

// Records that failed or come from another machine are ignored, as are those of other conditions when
// `conditions` is given. Of several records of one config the last counts, since it was taken with more care
// (re-timed beside the other good ones), but a full measurement is never replaced by an early-stopped one; a
// later crash, timeout or wrong answer takes the config out.
// Among configs, IsBetterRecord chooses.
BestByWorkload BestRecords(std::span<const Record> records, const Target& target,
                           const MeasureConditions* conditions = nullptr);

// A key that is equal for two records of the same config: workload, template, config and conditions.
std::string RecordKey(const Record& record);

}  // namespace tilesmith
