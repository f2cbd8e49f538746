#include "tuner/records/merge_logs.h"

#include <algorithm>

namespace tilesmith {

void LogMerger::Add(std::string_view line, const Record& record) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const auto [text, added] = texts_.emplace(line);
  if (!added) {
    ++duplicates_;
    return;
  }
  CountTarget(record.target, targets_);
  lines_.push_back({*text, record.time});
}

std::vector<std::string_view> LogMerger::Sorted() const {
  std::vector<const Line*> order;
  order.reserve(lines_.size());
  for (const Line& line : lines_) order.push_back(&line);
  std::stable_sort(order.begin(), order.end(),
                   [](const Line* a, const Line* b) { return a->time < b->time; });
  std::vector<std::string_view> sorted;
  sorted.reserve(order.size());
  for (const Line* line : order) sorted.push_back(line->text);
  return sorted;
}

}  // namespace tilesmith
