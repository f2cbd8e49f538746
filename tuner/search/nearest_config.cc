#include "tuner/search/nearest_config.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tilesmith {
namespace {

constexpr int64_t kWantedStep = 4, kOtherStep = 1;
constexpr size_t kMaxVisits = 4'000;

// By ratio, since knobs are sizes; 0 stands for something else and is only near itself.
int64_t NearestValue(const Knob& knob, int64_t wanted) {
  const auto distance = [wanted](int64_t value) {
    if (value == wanted) return 0.0;
    if (value <= 0 || wanted <= 0) return 1e9;
    return std::abs(std::log2(static_cast<double>(value) / static_cast<double>(wanted)));
  };
  return *std::min_element(knob.values.begin(), knob.values.end(),
                           [&](int64_t a, int64_t b) { return distance(a) < distance(b); });
}

}  // namespace

std::optional<Config> NearestConfig(const ConfigSpace& space, const Config& base, const Config& wanted) {
  Config start = base;
  std::vector<int64_t> steps;  // of each knob
  for (const Knob& knob : space.knobs()) {
    const std::optional<int64_t> value = wanted.Find(knob.name);
    if (value) start.Set(knob.name, NearestValue(knob, *value));
    steps.push_back(value ? kWantedStep : kOtherStep);
  }
  const std::optional<uint64_t> from = space.IndexOf(start);
  if (!from) return std::nullopt;
  using Entry = std::pair<int64_t, uint64_t>;  // distance, config
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  std::unordered_set<uint64_t> done;
  open.emplace(0, *from);
  while (!open.empty() && done.size() < kMaxVisits) {
    const auto [distance, index] = open.top();
    open.pop();
    if (!done.insert(index).second) continue;
    if (space.IsValid(index)) return space.At(index);
    uint64_t radix = 1;
    for (size_t i = 0; i < steps.size(); ++i) {
      const uint64_t count = space.knobs()[i].values.size();
      const uint64_t position = index / radix % count;
      if (position > 0) open.emplace(distance + steps[i], index - radix);
      if (position + 1 < count) open.emplace(distance + steps[i], index + radix);
      radix *= count;
    }
  }
  return std::nullopt;
}

}  // namespace tilesmith
