#include "layouts/measure/rounds.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "layouts/measure/quantile.h"

namespace tilesmith {
namespace {

bool IsLike(const PlacementRange& range, const CorePlacement& placement) {
  return AreAlike(range.least, placement) && AreAlike(range.most, placement);
}

std::vector<size_t> RoundsLike(const std::vector<PlacementRange>& rounds, const CorePlacement& placement) {
  std::vector<size_t> alike;
  for (size_t i = 0; i < rounds.size(); ++i)
    if (IsLike(rounds[i], placement)) alike.push_back(i);
  return alike;
}

// Rounds like `least`, of which none is better placed.
std::vector<size_t> RoundsFrom(const std::vector<PlacementRange>& rounds, const CorePlacement& least) {
  std::vector<size_t> alike = RoundsLike(rounds, least);
  std::erase_if(alike, [&](size_t i) { return IsBetter(rounds[i].least, least); });
  return alike;
}

// Equal placements are counted once: those of one thread all are, and there can be a million of them.
std::vector<size_t> LargestAlike(const std::vector<PlacementRange>& rounds) {
  std::map<std::pair<double, double>, size_t> counts;
  size_t largest = 0;
  CorePlacement best;
  for (const auto& [least, most] : rounds) {
    const auto [found, is_new] = counts.try_emplace({least.barrier_seconds, least.arithmetic_seconds});
    if (is_new) found->second = RoundsFrom(rounds, least).size();
    const size_t count = found->second;
    if (count < largest || (count == largest && count > 0 && !IsBetter(least, best))) continue;
    largest = count;
    best = least;
  }
  return RoundsFrom(rounds, best);
}

}  // namespace

void PlacementRange::Include(const CorePlacement& placement) {
  if (!least.is_known()) least = placement;
  least = {std::min(least.barrier_seconds, placement.barrier_seconds),
           std::min(least.arithmetic_seconds, placement.arithmetic_seconds)};
  most = {std::max(most.barrier_seconds, placement.barrier_seconds),
          std::max(most.arithmetic_seconds, placement.arithmetic_seconds)};
}

void PlacementRange::Include(const PlacementRange& range) {
  Include(range.least);
  Include(range.most);
}

PlacementRange TakeRound(size_t round, size_t contestants, const CorePlacement& preferred,
                         const std::function<PlacementRange(size_t contestant)>& turn) {
  std::vector<PlacementRange> seen(contestants);
  CorePlacement last;
  const auto take = [&](size_t contestant) {
    seen[contestant] = turn(contestant);
    last = seen[contestant].least;
  };
  for (size_t i = 0; i < contestants; ++i) take((round + i) % contestants);
  for (size_t again = 0; again < contestants; ++again) {
    const bool as_preferred = preferred.is_known() && !RoundsLike(seen, preferred).empty();
    const CorePlacement wanted = as_preferred ? preferred : last;
    const auto elsewhere =
        std::ranges::find_if(seen, [&](const PlacementRange& range) { return !IsLike(range, wanted); });
    if (elsewhere == seen.end()) break;
    take(static_cast<size_t>(elsewhere - seen.begin()));
  }
  PlacementRange all;
  for (const PlacementRange& range : seen) all.Include(range);
  return all;
}

std::vector<size_t> AlikeRounds(const std::vector<PlacementRange>& rounds, const CorePlacement& preferred,
                                size_t least) {
  if (preferred.is_known()) {
    std::vector<size_t> like = RoundsLike(rounds, preferred);
    if (like.size() >= least) return like;
  }
  return LargestAlike(rounds);
}

std::vector<size_t> ComparableRounds(const std::vector<PlacementRange>& rounds,
                                     const CorePlacement& preferred, size_t least) {
  std::vector<size_t> comparable = AlikeRounds(rounds, preferred, least);
  if (comparable.size() >= least) return comparable;
  comparable.resize(rounds.size());
  std::iota(comparable.begin(), comparable.end(), size_t{0});
  return comparable;
}

bool EnoughAreAlike(const std::vector<PlacementRange>& rounds, const CorePlacement& preferred, size_t least) {
  return (preferred.is_known() ? RoundsLike(rounds, preferred) : LargestAlike(rounds)).size() >= least;
}

CorePlacement MedianPlacement(const std::vector<PlacementRange>& rounds) {
  std::vector<double> barriers, arithmetic;
  barriers.reserve(rounds.size());
  arithmetic.reserve(rounds.size());
  for (const PlacementRange& round : rounds) {
    barriers.push_back((round.least.barrier_seconds + round.most.barrier_seconds) / 2);
    arithmetic.push_back((round.least.arithmetic_seconds + round.most.arithmetic_seconds) / 2);
  }
  return {Quantile(std::move(barriers), 0.5), Quantile(std::move(arithmetic), 0.5)};
}

}  // namespace tilesmith
