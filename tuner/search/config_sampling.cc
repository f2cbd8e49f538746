#include "tuner/search/config_sampling.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tilesmith {
namespace {

constexpr uint64_t kListedSize = 1 << 14;
constexpr int kMissesInARow = 200'000;

}  // namespace

void ValidSampler::List(RandomSource& random) {
  listed_ = true;
  for (uint64_t index = 0; index < space_.size(); ++index) {
    if (space_.IsValid(index)) left_.push_back(index);
  }
  for (size_t i = left_.size(); i > 1; --i) std::swap(left_[i - 1], left_[random.Below(i)]);
}

std::optional<uint64_t> ValidSampler::Draw(const std::unordered_set<uint64_t>& taken, RandomSource& random) {
  if (space_.size() <= kListedSize) {
    if (!listed_) List(random);
    while (!left_.empty()) {
      const uint64_t index = left_.back();
      left_.pop_back();
      if (!taken.contains(index)) return index;
    }
    return std::nullopt;
  }
  for (int misses = 0; misses < kMissesInARow; ++misses) {
    const uint64_t index = random.Below(space_.size());
    if (!taken.contains(index) && space_.IsValid(index)) return index;
  }
  return std::nullopt;
}

namespace {

constexpr double kStepMutation = 0.7;

}  // namespace

uint64_t MutateKnob(const ConfigSpace& space, uint64_t index, RandomSource& random) {
  const std::vector<Knob>& knobs = space.knobs();
  if (knobs.empty()) return index;
  const size_t chosen = random.Below(knobs.size());
  uint64_t radix = 1;
  for (size_t k = 0; k < chosen; ++k) radix *= knobs[k].values.size();
  const uint64_t count = knobs[chosen].values.size();
  const uint64_t old = index / radix % count;
  uint64_t position = random.Below(count);
  if (random.Chance(kStepMutation)) {
    const bool up = random.Chance(0.5);
    position = up ? std::min(old + 1, count - 1) : old - (old > 0);
  }
  return index - old * radix + position * radix;
}

uint64_t CrossKnobs(const ConfigSpace& space, uint64_t a, uint64_t b, RandomSource& random) {
  uint64_t child = 0;
  uint64_t radix = 1;
  for (const Knob& knob : space.knobs()) {
    const uint64_t count = knob.values.size();
    child += radix * ((random.Chance(0.5) ? a : b) / radix % count);
    radix *= count;
  }
  return child;
}

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
