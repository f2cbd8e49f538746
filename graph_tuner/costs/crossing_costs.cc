#include "graph_tuner/costs/crossing_costs.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace tilesmith {

double CrossingCosts::Seconds(int64_t bytes) {
  if (seconds_.empty()) {
    for (const int64_t size : kSizes) {
      const CostKey key{{"kind", "crossing"}, {"bytes", std::to_string(size)}};
      auto known = file_.Find(key);
      if (!known) file_.Add(key, *(known = measure_(size)));
      seconds_.push_back(std::max(*known, seconds_.empty() ? 0.0 : seconds_.back()));
    }
  }
  int64_t before = 0;
  double seconds_before = 0;
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    if (bytes <= kSizes[i]) {
      const double part = static_cast<double>(bytes - before) / static_cast<double>(kSizes[i] - before);
      return seconds_before + part * (seconds_[i] - seconds_before);
    }
    before = kSizes[i];
    seconds_before = seconds_[i];
  }
  return seconds_.back() * (static_cast<double>(bytes) / static_cast<double>(std::end(kSizes)[-1]));
}

}  // namespace tilesmith
