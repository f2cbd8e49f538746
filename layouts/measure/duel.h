// A duel: several ways to compute the same thing, timed in turns in one process.
//
// Clocks drift, neighbours come and go, and pages land where they land; a figure taken now cannot be compared
// with one taken a second ago. So contestants alternate in short blocks, the order rotating from round to
// round, and are compared within each round: the result is the median of the paired ratios, with its spread.
// Turns that saw the cores move are taken again, and rounds that saw them placed otherwise than most did are
// left out (rounds.h).
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "layouts/base/stop_flag.h"
#include "layouts/measure/rounds.h"

namespace tilesmith {

struct Contestant {
  std::string name;
  std::function<void()> run;
  std::vector<std::span<const std::byte>> weights;  // evicted before every run of a cold duel
  // What is held while it runs, where it has threads of its own that must not disturb others; null: nothing.
  std::function<std::shared_ptr<void>()> turn = {};
};

constexpr int kMinRounds = 5;
struct DuelOptions {
  double seconds = 0.5;  // for all contestants together
  bool cold = false;
  int min_rounds = kMinRounds;   // whatever they take
  int threads = 1;               // of the team whose cores' placement is watched
  CorePlacement preferred = {};  // of the rounds that count, if there are enough
  double block_seconds = 2e-3;   // of one contestant in one round, when its runs are shorter than that ...
  int least_block_runs = 1;      // ... and so many runs when they are longer
  const StopFlag* stop = nullptr;
  // From when on min_rounds are enough, however the cores were placed in them, of shorter blocks; on the
  // clock of NowSeconds.
  double end = std::numeric_limits<double>::infinity();
};

// Whole networks, warm: blocks are long enough for one's weights and tensors to be where they stay while
// it alone runs (several together are more than the caches hold), and of several runs.
DuelOptions NetworkDuel(double seconds, int threads, const CorePlacement& preferred);

// Seconds per run, [round][contestant].
using DuelRounds = std::vector<std::vector<double>>;

using Duel = Rounds<double>;

// Every block begins with an untimed run, which brings the contestant's own data into the caches (in a cold
// duel: all but the weights). While fewer than min_rounds were alike it goes on, up to twice as long or until
// `end`. Precondition: at least one contestant. Throws Error(kInterrupted) when it is stopped, between two
// runs.
Duel RunDuel(std::span<const Contestant> contestants, const DuelOptions& options);

// Median over the rounds.
double DuelSeconds(const DuelRounds& rounds, size_t contestant);

// seconds of b / seconds of a, in each round: above 1 when a is the faster one.
struct PairedRatio {
  double median = 0, p10 = 0, p90 = 0;
  double low = 0, high = 0;  // 95% interval of the median (MedianInterval)
};
PairedRatio RatioOf(const DuelRounds& rounds, size_t a, size_t b);

// Where the median of what the values are drawn from lies, with at least 95% confidence and whatever its
// distribution: between the k-th smallest and the k-th largest value, for the largest k with
// 2 P(Binomial(n, 1/2) < k) <= 0.05. Below 6 values there is no such k; it is the range of all of them then.
// Precondition: not empty. Source: H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed., 2003, 7.1.
std::pair<double, double> MedianInterval(std::vector<double> values);

}  // namespace tilesmith
