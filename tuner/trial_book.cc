#include "tuner/trial_book.h"

#include <algorithm>

#include "tuner/records/record_groups.h"

namespace tilesmith {

void TrialBook::Enter(const Record& record) {
  const auto [place, added] = by_schedule_.try_emplace(ScheduleText(record), records_.size());
  if (added) {
    records_.push_back(record);
  } else {
    records_[place->second] = record;
  }
}

bool TrialBook::Knows(std::string_view template_name, const Config& config) const {
  return by_schedule_.contains(ScheduleKey(template_name, config).ToString());
}

const Record* TrialBook::Best() const {
  const Record* best = nullptr;
  for (const Record& record : records_) {
    if (!IsUsable(record) || record.early_stopped) continue;
    if (best == nullptr || IsBetterRecord(record, *best)) best = &record;
  }
  return best;
}

std::vector<const Record*> TrialBook::Top(size_t n) const {
  std::vector<const Record*> top;
  for (const Record& record : records_) {
    if (IsUsable(record) && !record.early_stopped) top.push_back(&record);
  }
  const auto better = [](const Record* a, const Record* b) { return IsBetterRecord(*a, *b); };
  std::stable_sort(top.begin(), top.end(), better);
  if (top.size() > n) top.resize(n);
  return top;
}

std::map<LayoutPair, const Record*> TrialBook::BestOfPairs() const {
  std::map<LayoutPair, const Record*> best;
  for (const Record& record : records_) {
    if (!IsUsable(record)) continue;
    const Record*& known = best[record.layouts];
    if (known == nullptr || IsBetterRecord(record, *known)) known = &record;
  }
  return best;
}

}  // namespace tilesmith
