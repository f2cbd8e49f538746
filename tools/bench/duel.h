// A duel: several ways to compute the same thing, timed in turns in one process.
//
// Clocks drift, neighbours come and go, and pages land where they land; a figure taken now cannot be compared
// with one taken a second ago. So contestants alternate in short blocks, the order rotating from round to
// round, and are compared within each round: the result is the median of the paired ratios, with its spread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tilesmith {

struct Contestant {
  std::string name;
  std::function<void()> run;
  std::vector<std::span<const float>> weights;  // evicted before every run of a cold duel
};

struct DuelOptions {
  double seconds = 0.5;  // for all contestants together; at least kMinRounds rounds whatever they take
  bool cold = false;
};
constexpr int kMinRounds = 5;
constexpr double kBlockSeconds = 2e-3;  // of one contestant in one round, when its runs are shorter than that

// Seconds per run, [round][contestant].
using DuelRounds = std::vector<std::vector<double>>;

// Every block begins with an untimed run, which brings the contestant's own data into the caches (in a cold
// duel: all but the weights). Precondition: at least one contestant.
DuelRounds RunDuel(std::span<const Contestant> contestants, const DuelOptions& options);

// Median over the rounds.
double DuelSeconds(const DuelRounds& rounds, size_t contestant);

// seconds of b / seconds of a, in each round: above 1 when a is the faster one.
struct PairedRatio {
  double median = 0, p10 = 0, p90 = 0;
};
PairedRatio RatioOf(const DuelRounds& rounds, size_t a, size_t b);

}  // namespace tilesmith
