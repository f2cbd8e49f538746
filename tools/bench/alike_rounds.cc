#include "tools/bench/alike_rounds.h"

#include <algorithm>
#include <numeric>

#include "layouts/base/core_distance.h"
#include "layouts/base/quantile.h"

namespace tilesmith {
namespace {

bool IsLike(const CoreDistance& distance, double barrier_seconds) {
  return AreAlike(distance.least, barrier_seconds) && AreAlike(distance.most, barrier_seconds);
}

std::vector<size_t> RoundsLike(const std::vector<CoreDistance>& rounds, double barrier_seconds) {
  std::vector<size_t> alike;
  for (size_t i = 0; i < rounds.size(); ++i)
    if (IsLike(rounds[i], barrier_seconds)) alike.push_back(i);
  return alike;
}

std::vector<size_t> LargestAlike(const std::vector<CoreDistance>& rounds) {
  std::vector<size_t> largest;
  double nearest = 0;
  for (const CoreDistance& anchor : rounds) {
    std::vector<size_t> alike;
    for (size_t i = 0; i < rounds.size(); ++i) {
      if (rounds[i].least >= anchor.least && AreAlike(rounds[i].most, anchor.least)) alike.push_back(i);
    }
    if (alike.size() < largest.size() || (alike.size() == largest.size() && anchor.least >= nearest))
      continue;
    largest = std::move(alike);
    nearest = anchor.least;
  }
  return largest;
}

}  // namespace

void CoreDistance::Include(double barrier_seconds) {
  least = most == 0 ? barrier_seconds : std::min(least, barrier_seconds);
  most = std::max(most, barrier_seconds);
}

CoreDistance TakeRound(size_t round, size_t contestants, const std::function<double()>& barrier_seconds,
                       const std::function<void(size_t contestant)>& turn) {
  std::vector<CoreDistance> seen(contestants);
  double now = barrier_seconds();
  const auto take = [&](size_t contestant) {
    seen[contestant] = {now, now};
    turn(contestant);
    now = barrier_seconds();
    seen[contestant].Include(now);
  };
  for (size_t i = 0; i < contestants; ++i) take((round + i) % contestants);
  for (size_t again = 0; again < contestants; ++again) {
    const auto elsewhere = std::ranges::find_if(seen, [&](const CoreDistance& d) { return !IsLike(d, now); });
    if (elsewhere == seen.end()) break;
    take(size_t(elsewhere - seen.begin()));
  }
  CoreDistance all;
  for (const CoreDistance& distance : seen) {
    all.Include(distance.least);
    all.Include(distance.most);
  }
  return all;
}

std::vector<size_t> AlikeRounds(const std::vector<CoreDistance>& rounds, double preferred, size_t least) {
  if (preferred > 0) {
    std::vector<size_t> like = RoundsLike(rounds, preferred);
    if (like.size() >= least) return like;
  }
  return LargestAlike(rounds);
}

std::vector<size_t> ComparableRounds(const std::vector<CoreDistance>& rounds, double preferred,
                                     size_t least) {
  std::vector<size_t> comparable = AlikeRounds(rounds, preferred, least);
  if (comparable.size() >= least) return comparable;
  comparable.resize(rounds.size());
  std::iota(comparable.begin(), comparable.end(), size_t{0});
  return comparable;
}

bool EnoughAreAlike(const std::vector<CoreDistance>& rounds, double preferred, size_t least) {
  return (preferred > 0 ? RoundsLike(rounds, preferred) : LargestAlike(rounds)).size() >= least;
}

double MedianBarrierSeconds(const std::vector<CoreDistance>& rounds) {
  std::vector<double> seconds;
  seconds.reserve(rounds.size());
  for (const CoreDistance& round : rounds) seconds.push_back((round.least + round.most) / 2);
  return Quantile(std::move(seconds), 0.5);
}

}  // namespace tilesmith
