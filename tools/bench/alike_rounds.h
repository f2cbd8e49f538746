// Rounds of a comparison that saw the cores at one distance (layouts/base/core_distance.h).
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace tilesmith {

// The shortest and the longest barrier of a round, seen before its turns, between them and after the last.
struct CoreDistance {
  double least = 0, most = 0;
  void Include(double barrier_seconds);
};

// One turn of every contestant, in an order that rotates from round to round; barriers are timed before,
// between and after them. A turn that saw the cores elsewhere than they are at the end is taken again, until
// there is none or every contestant could have had two: `turn` replaces what the contestant showed before.
// Returns what the turns that stand saw.
CoreDistance TakeRound(size_t round, size_t contestants, const std::function<double()>& barrier_seconds,
                       const std::function<void(size_t contestant)>& turn);

// The rounds whose barriers are all alike: those that are like `preferred` (0: none), if these are `least`
// rounds or more, else the largest set, of equally large ones the nearest. Ascending indices.
std::vector<size_t> AlikeRounds(const std::vector<CoreDistance>& rounds, double preferred = 0,
                                size_t least = 1);

// AlikeRounds if these are `least` rounds or more, else all: a machine that does not stand still for as long
// as a round has no distance of its own.
std::vector<size_t> ComparableRounds(const std::vector<CoreDistance>& rounds, double preferred, size_t least);

// Whether enough has been seen: `least` rounds that are alike, and, if a distance is preferred, like that.
bool EnoughAreAlike(const std::vector<CoreDistance>& rounds, double preferred, size_t least);

// Of the middle one of the rounds. Precondition: not empty.
double MedianBarrierSeconds(const std::vector<CoreDistance>& rounds);

// Those of `values` that the indices name, in their order.
template <typename Value>
std::vector<Value> Selected(const std::vector<Value>& values, const std::vector<size_t>& indices) {
  std::vector<Value> selected;
  for (const size_t index : indices) selected.push_back(values[index]);
  return selected;
}

}  // namespace tilesmith
