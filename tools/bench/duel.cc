#include "tools/bench/duel.h"

#include <algorithm>
#include <cmath>

#include "layouts/base/check.h"
#include "layouts/base/quantile.h"
#include "tools/bench/placed_samples.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/progress.h"
#include "tuner/measure/cache_eviction.h"

namespace tilesmith {
namespace {

constexpr int kMaxRounds = 400;
constexpr int kBlockParts = 5;
constexpr int kPatience = 2;  // times as long as asked for, where the cores move

void RunOnce(const Contestant& contestant) {
  ThrowIfStopped(&InterruptFlag());
  contestant.run();
}

double TimeRuns(const Contestant& contestant, int runs) {
  const double begin = NowSeconds();
  for (int i = 0; i < runs; ++i) RunOnce(contestant);
  return (NowSeconds() - begin) / runs;
}

// Seconds per run of a block: the median of its comparable parts, so that an interrupt in one of them, or
// cores that move, do not count.
double TimeBlock(const Contestant& contestant, int runs, const DuelOptions& options, PlacementRange& seen) {
  const int part_runs = options.cold ? 1 : (runs + kBlockParts - 1) / kBlockParts;
  const auto take = [&] {
    for (const std::span<const float> weights : contestant.weights) {
      if (options.cold) EvictFromCaches(weights);
    }
    return TimeRuns(contestant, part_runs);
  };
  const auto parts = TakePlacedSamples([&] { return SeePlacement(options.threads); }, take,
                                       [&](size_t taken) { return int(taken) * part_runs < runs; });
  return Quantile(ComparableSamples(parts, options.preferred, seen), 0.5);
}

}  // namespace

DuelOptions NetworkDuel(double seconds, int threads, const CorePlacement& preferred) {
  return {.seconds = seconds,
          .threads = threads,
          .preferred = preferred,
          .block_seconds = 30e-3,
          .least_block_runs = 3};
}

Duel RunDuel(std::span<const Contestant> contestants, const DuelOptions& options) {
  TILESMITH_CHECK(!contestants.empty());
  std::vector<int> runs;
  for (const Contestant& contestant : contestants) {
    RunOnce(contestant);
    runs.push_back(int(std::clamp(std::ceil(options.block_seconds / TimeRuns(contestant, 1)),
                                  double(options.least_block_runs), 1000.0)));
  }
  Duel duel;
  const double begin = NowSeconds();
  const auto is_over = [&](int times) {
    const int rounds = int(duel.rounds.size());
    return rounds >= times * options.min_rounds &&
           (rounds >= kMaxRounds || NowSeconds() - begin >= times * options.seconds);
  };
  const size_t least = size_t(options.min_rounds);
  const auto are_alike = [&] { return EnoughAreAlike(duel.placements, options.preferred, least); };
  while (!is_over(1) || (!are_alike() && !is_over(kPatience))) {
    std::vector<double> seconds(contestants.size());
    duel.placements.push_back(
        TakeRound(duel.rounds.size(), contestants.size(), options.preferred, [&](size_t turn) {
          PlacementRange seen;
          RunOnce(contestants[turn]);
          seconds[turn] = TimeBlock(contestants[turn], runs[turn], options, seen);
          return seen;
        }));
    duel.rounds.push_back(std::move(seconds));
  }
  return Comparable(duel, options.preferred, least);
}

Duel Comparable(const Duel& duel, const CorePlacement& preferred, size_t least) {
  const std::vector<size_t> comparable = ComparableRounds(duel.placements, preferred, least);
  return {Selected(duel.rounds, comparable), Selected(duel.placements, comparable)};
}

double DuelSeconds(const DuelRounds& rounds, size_t contestant) {
  std::vector<double> seconds;
  for (const auto& round : rounds) seconds.push_back(round[contestant]);
  return Quantile(std::move(seconds), 0.5);
}

PairedRatio RatioOf(const DuelRounds& rounds, size_t a, size_t b) {
  std::vector<double> ratios;
  for (const auto& round : rounds) ratios.push_back(round[b] / round[a]);
  const auto [low, high] = MedianInterval(ratios);
  return {Quantile(ratios, 0.5), Quantile(ratios, 0.1), Quantile(ratios, 0.9), low, high};
}

std::pair<double, double> MedianInterval(std::vector<double> values) {
  TILESMITH_CHECK(!values.empty());
  std::ranges::sort(values);
  const size_t n = values.size();
  double equal = std::pow(0.5, double(n)), below = 0;  // P(Binomial = k), P(Binomial < k)
  size_t k = 0;
  for (; k < n / 2 && below + equal <= 0.025; ++k) {
    below += equal;
    equal *= double(n - k) / double(k + 1);
  }
  const size_t first = k > 0 ? k - 1 : 0;
  return {values[first], values[n - 1 - first]};
}

}  // namespace tilesmith
