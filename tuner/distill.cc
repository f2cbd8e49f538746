#include "tuner/distill.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

#include "tuner/record_groups.h"

namespace tilesmith {
namespace {

// `records` have one pair of layouts, in the order of the log.
void KeepBest(std::vector<const Record*> records, int64_t top, std::vector<const Record*>& kept) {
  std::stable_sort(records.begin(), records.end(),
                   [](const Record* a, const Record* b) { return IsBetterRecord(*a, *b); });
  std::map<std::string_view, double> least_error;  // of the faster records of a template
  for (const Record* record : records) {
    const double error = record->error.value_or(std::numeric_limits<double>::infinity());
    const auto [known, first] = least_error.try_emplace(record->template_name, error);
    const bool more_accurate = first || error < known->second;
    known->second = std::min(known->second, error);
    if (top > 0 || more_accurate) kept.push_back(record);
    --top;
  }
}

}  // namespace

std::vector<const Record*> Distill(std::span<const Record> records, int64_t top) {
  std::vector<const Record*> kept;
  for (const RecordGroup& group : GroupRecords(StandingRecords(records))) {
    std::map<LayoutPair, std::vector<const Record*>> pairs;
    for (const Record* record : group.records) pairs[record->layouts].push_back(record);
    for (const auto& [layouts, of_pair] : pairs) KeepBest(of_pair, top, kept);
  }
  std::sort(kept.begin(), kept.end());  // of one array: the order of the log
  return kept;
}

}  // namespace tilesmith
