#include "tuner/template_race.h"

#include <algorithm>

namespace tilesmith {
namespace {

constexpr double kClose = 1.5;  // tuning rarely gains more than this on a template's first batch
constexpr int kLeaderTurns = 3;

}  // namespace

std::optional<size_t> TemplateRace::Next() {
  std::optional<size_t> leader, challenger;
  double best = std::numeric_limits<double>::infinity();
  for (const Runner& runner : runners_) best = std::min(best, runner.best_seconds);
  for (size_t i = 0; i < runners_.size(); ++i) {
    const Runner& runner = runners_[i];
    if (runner.exhausted) continue;
    if (runner.batches == 0) return i;
    if (!leader || runner.best_seconds < runners_[*leader].best_seconds) leader = i;
  }
  for (size_t i = 0; i < runners_.size(); ++i) {
    const Runner& runner = runners_[i];
    if (runner.exhausted || i == leader || !(runner.best_seconds <= kClose * best)) continue;
    if (!challenger || runner.batches < runners_[*challenger].batches) challenger = i;
  }
  const bool challenge = ++turn_ % kLeaderTurns == 0;
  return challenge && challenger ? challenger : leader;
}

void TemplateRace::Tried(size_t runner, double best_seconds) {
  ++runners_[runner].batches;
  runners_[runner].best_seconds = std::min(runners_[runner].best_seconds, best_seconds);
}

}  // namespace tilesmith
