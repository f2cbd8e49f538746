// Rounds of a comparison, one turn of every side in each, and samples of one side, that saw the cores placed
// alike: hosts move virtual cores many times a second (layouts/measure/core_placement.h).
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "layouts/measure/core_placement.h"

namespace tilesmith {

// The least and the most that has been seen of either figure.
struct PlacementRange {
  CorePlacement least, most;
  void Include(const CorePlacement& placement);
  void Include(const PlacementRange& range);
};

// One turn of every contestant, in an order that rotates from round to round; `turn` says where it saw the
// cores. One that saw them elsewhere than the last one did (or, if any saw them as preferred, than that) is
// taken again, until there is none or every contestant could have had two: `turn` replaces what the
// contestant showed before. Returns what the turns that stand saw.
PlacementRange TakeRound(size_t round, size_t contestants, const CorePlacement& preferred,
                         const std::function<PlacementRange(size_t contestant)>& turn);

// The rounds whose placements are all alike: those that are like `preferred` (unknown: none), if these are
// `least` rounds or more, else the largest set, of equally large ones the better placed. Ascending indices.
std::vector<size_t> AlikeRounds(const std::vector<PlacementRange>& rounds,
                                const CorePlacement& preferred = {}, size_t least = 1);

// AlikeRounds if these are `least` rounds or more, else all: a machine that does not stand still for as long
// as a round has no placement of its own.
std::vector<size_t> ComparableRounds(const std::vector<PlacementRange>& rounds,
                                     const CorePlacement& preferred, size_t least);

// Whether enough has been seen: `least` rounds that are alike and, if a placement is preferred, like that.
bool EnoughAreAlike(const std::vector<PlacementRange>& rounds, const CorePlacement& preferred, size_t least);

// The median of the rounds' means, for either figure. Precondition: not empty.
CorePlacement MedianPlacement(const std::vector<PlacementRange>& rounds);

// Those of `values` that the indices name, in their order.
template <typename Value>
std::vector<Value> Selected(const std::vector<Value>& values, const std::vector<size_t>& indices) {
  std::vector<Value> selected;
  selected.reserve(indices.size());
  for (const size_t index : indices) selected.push_back(values[index]);
  return selected;
}

// What every side showed in every round.
template <typename Value>
struct Rounds {
  std::vector<std::vector<Value>> rounds;  // [round][side]
  std::vector<PlacementRange> placements;  // of each round
};

// The comparable rounds (ComparableRounds).
template <typename Value>
Rounds<Value> Comparable(const Rounds<Value>& all, const CorePlacement& preferred, size_t least) {
  const std::vector<size_t> comparable = ComparableRounds(all.placements, preferred, least);
  return {Selected(all.rounds, comparable), Selected(all.placements, comparable)};
}

// Takes rounds until there are enough of them, `is_over(rounds, 1)`, and `alike` of them are alike; where the
// cores move, until `is_over(rounds, 2)`: twice as many, or as long. `turn(side, seen)` returns what the side
// shows, and includes in `seen` where the cores were.
template <typename Value, typename IsOver, typename Turn>
Rounds<Value> TakeRounds(size_t sides, const CorePlacement& preferred, size_t alike, const IsOver& is_over,
                         const Turn& turn) {
  constexpr int kPatience = 2;
  Rounds<Value> taken;
  const auto are_alike = [&] { return EnoughAreAlike(taken.placements, preferred, alike); };
  while (!is_over(taken.rounds.size(), 1) || (!are_alike() && !is_over(taken.rounds.size(), kPatience))) {
    std::vector<Value> values(sides);
    taken.placements.push_back(TakeRound(taken.rounds.size(), sides, preferred, [&](size_t side) {
      PlacementRange seen;
      values[side] = turn(side, seen);
      return seen;
    }));
    taken.rounds.push_back(std::move(values));
  }
  return taken;
}

// Samples that are taken one after the other, each with where the cores were before and after it.
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
