// Rounds of a comparison that saw the cores placed in one way (layouts/base/core_placement.h).
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "layouts/base/core_placement.h"

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

// Of either figure the middle one of the rounds' means. Precondition: not empty.
CorePlacement MedianPlacement(const std::vector<PlacementRange>& rounds);

// Those of `values` that the indices name, in their order.
template <typename Value>
std::vector<Value> Selected(const std::vector<Value>& values, const std::vector<size_t>& indices) {
  std::vector<Value> selected;
  selected.reserve(indices.size());
  for (const size_t index : indices) selected.push_back(values[index]);
  return selected;
}

}  // namespace tilesmith
