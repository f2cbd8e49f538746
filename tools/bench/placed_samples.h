// Samples that are taken one after the other, each with where the cores were before and after it: hosts move
// virtual cores many times a second (layouts/base/core_placement.h).
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "tools/bench/alike_rounds.h"

namespace tilesmith {

template <typename Value>
struct PlacedSamples {
  std::vector<Value> values;
  std::vector<PlacementRange> ranges;  // of each
};

// Takes samples while `more(how many there are)`.
template <typename Take, typename More>
auto TakePlacedSamples(const std::function<CorePlacement()>& placement, const Take& take, const More& more) {
  PlacedSamples<decltype(take())> samples;
  CorePlacement before = placement();
  while (more(samples.values.size())) {
    samples.values.push_back(take());
    const CorePlacement after = placement();
    PlacementRange range = {before, before};
    range.Include(after);
    samples.ranges.push_back(range);
    before = after;
  }
  return samples;
}

// Those that were taken on cores placed alike, like `preferred` if any was; all of them if each saw the cores
// move. Adds what they saw to `seen`.
template <typename Value>
std::vector<Value> ComparableSamples(const PlacedSamples<Value>& samples, const CorePlacement& preferred,
                                     PlacementRange& seen) {
  const std::vector<size_t> comparable = ComparableRounds(samples.ranges, preferred, 1);
  for (const PlacementRange& range : Selected(samples.ranges, comparable)) seen.Include(range);
  return Selected(samples.values, comparable);
}

}  // namespace tilesmith
