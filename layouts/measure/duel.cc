#include "layouts/measure/duel.h"

#include <algorithm>
#include <cmath>

#include "layouts/base/check.h"
#include "layouts/measure/cache_eviction.h"
#include "layouts/measure/quantile.h"
#include "layouts/measure/sampling.h"

namespace tilesmith {
namespace {

constexpr int kMaxRounds = 400;
constexpr int kBlockParts = 5;

std::shared_ptr<void> TakeTurn(const Contestant& contestant) {
  return contestant.turn ? contestant.turn() : nullptr;
}

void RunTimes(const Contestant& contestant, int runs, const StopFlag* stop) {
  for (int i = 0; i < runs; ++i) {
    ThrowIfStopped(stop);
    contestant.run();
  }
}

double SecondsPerRun(const Contestant& contestant, int runs, const StopFlag* stop) {
  return SecondsOf([&] { RunTimes(contestant, runs, stop); }) / runs;
}

// Seconds per run of a block: the median of its comparable parts, so that an interrupt in one of them, or
// cores that move, do not count.
double TimeBlock(const Contestant& contestant, int runs, const DuelOptions& options, PlacementRange& seen) {
  const int part_runs = options.cold ? 1 : (runs + kBlockParts - 1) / kBlockParts;
  const auto take = [&] {
    for (const std::span<const std::byte> weights : contestant.weights) {
      if (options.cold) EvictFromCaches(weights);
    }
    const std::shared_ptr<void> held = TakeTurn(contestant);
    if (held && !options.cold) RunTimes(contestant, 1, options.stop);  // its threads are new
    return SecondsPerRun(contestant, part_runs, options.stop);
  };
  const auto parts = TakePlacedSamples([&] { return SeePlacement(options.threads); }, take,
                                       [&](size_t taken) {
                                         const bool is_over = taken > 0 && NowSeconds() >= options.end;
                                         return !is_over && static_cast<int>(taken) * part_runs < runs;
                                       });
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
    const std::shared_ptr<void> held = TakeTurn(contestant);
    RunTimes(contestant, 1, options.stop);
    const double once = SecondsPerRun(contestant, 1, options.stop);
    runs.push_back(static_cast<int>(std::clamp(std::ceil(options.block_seconds / once),
                                               static_cast<double>(options.least_block_runs), 1000.0)));
  }
  const double begin = NowSeconds();
  const auto is_over = [&](size_t taken, int times) {
    const int rounds = static_cast<int>(taken);
    if (NowSeconds() >= options.end) return rounds >= options.min_rounds;
    return rounds >= times * options.min_rounds &&
           (rounds >= kMaxRounds || NowSeconds() - begin >= times * options.seconds);
  };
  const auto turn = [&](size_t side, PlacementRange& seen) {
    RunTimes(contestants[side], 1, options.stop);
    return TimeBlock(contestants[side], runs[side], options, seen);
  };
  const size_t least = static_cast<size_t>(options.min_rounds);
  return Comparable(TakeRounds<double>(contestants.size(), options.preferred, least, is_over, turn),
                    options.preferred, least);
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
  double equal = std::pow(0.5, static_cast<double>(n)), below = 0;  // P(Binomial = k), P(Binomial < k)
  size_t k = 0;
  for (; k < n / 2 && below + equal <= 0.025; ++k) {
    below += equal;
    equal *= static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  const size_t first = k > 0 ? k - 1 : 0;
  return {values[first], values[n - 1 - first]};
}

}  // namespace tilesmith
