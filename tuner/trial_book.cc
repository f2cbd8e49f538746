#include "tuner/trial_book.h"

#include <algorithm>

namespace tilesmith {
namespace {

bool Better(const Record& a, const Record& b) {
  if (a.early_stopped != b.early_stopped) return b.early_stopped;
  return a.seconds < b.seconds;
}

}  // namespace

std::string TrialBook::Key(std::string_view template_name, const Config& config) {
  return std::string(template_name) + ' ' + config.ToString();
}

void TrialBook::Enter(const Record& record) {
  const auto [place, added] = by_key_.try_emplace(Key(record.template_name, record.config), records_.size());
  if (added) {
    records_.push_back(record);
  } else {
    records_[place->second] = record;
  }
}

bool TrialBook::Knows(std::string_view template_name, const Config& config) const {
  return by_key_.contains(Key(template_name, config));
}

const Record* TrialBook::Best() const {
  const std::vector<const Record*> top = Top(1);
  return top.empty() ? nullptr : top[0];
}

std::vector<const Record*> TrialBook::Top(size_t n) const {
  std::vector<const Record*> top;
  for (const Record& record : records_) {
    if (IsUsable(record) && !record.early_stopped) top.push_back(&record);
  }
  const auto faster = [](const Record* a, const Record* b) { return a->seconds < b->seconds; };
  std::stable_sort(top.begin(), top.end(), faster);
  if (top.size() > n) top.resize(n);
  return top;
}

std::map<LayoutPair, const Record*> TrialBook::BestOfPairs() const {
  std::map<LayoutPair, const Record*> best;
  for (const Record& record : records_) {
    if (!IsUsable(record)) continue;
    const Record*& known = best[record.layouts];
    if (known == nullptr || Better(record, *known)) known = &record;
  }
  return best;
}

}  // namespace tilesmith
