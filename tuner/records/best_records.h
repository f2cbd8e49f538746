// From a log to candidates: the best schedule of each workload for each pair of layouts.
#pragma once

#include <map>
#include <span>
#include <string>

#include "tuner/records/record.h"

namespace tilesmith {

// By canonical workload, then by layout pair, whatever the template.
using BestByLayouts = std::map<LayoutPair, Record>;
using BestByWorkload = std::map<std::string, BestByLayouts>;

// Records that failed or come from another machine are ignored, as are those of other conditions when
// `conditions` is given. Of several records of one config the one that stands counts; among configs,
// IsBetterRecord chooses (record_groups.h says both).
BestByWorkload BestRecords(std::span<const Record> records, const Target& target,
                           const MeasureConditions* conditions = nullptr);

}  // namespace tilesmith
