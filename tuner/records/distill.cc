#include "tuner/records/distill.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "tuner/records/record_groups.h"

namespace tilesmith {
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
