#include "tuner/template_race.h"

#include <algorithm>

namespace tilesmith {
namespace {

constexpr double kClose = 1.5;  // tuning rarely gains more than this on a template's first batch
constexpr int kLeaderTurns = 3;

}  // namespace

std::optional<size_t> TemplateRace::NextUntried() const {
  for (size_t i = 0; i < runners_.size(); ++i) {
    if (!runners_[i].exhausted && runners_[i].turns == 0) return i;
  }
  return std::nullopt;
}

std::optional<size_t> TemplateRace::Next() {
  if (const std::optional<size_t> untried = NextUntried()) return untried;
  std::optional<size_t> leader, fresh, challenger;
  double best = std::numeric_limits<double>::infinity();
  for (const Runner& runner : runners_) best = std::min(best, runner.best_seconds);
  for (size_t i = 0; i < runners_.size(); ++i) {
    const Runner& runner = runners_[i];
    if (runner.exhausted) continue;
    if (!leader || runner.best_seconds < runners_[*leader].best_seconds) leader = i;
    const bool is_next = runner.turns == 1 && (!fresh || runner.best_seconds < runners_[*fresh].best_seconds);
    if (is_next) fresh = i;
  }
  if (fresh) return fresh;
  for (size_t i = 0; i < runners_.size(); ++i) {
    const Runner& runner = runners_[i];
    if (runner.exhausted || i == leader || !(runner.best_seconds <= kClose * best)) continue;
    if (!challenger || runner.turns < runners_[*challenger].turns) challenger = i;
  }
  const bool challenge = ++turn_ % kLeaderTurns == 0;
  return challenge && challenger ? challenger : leader;
}

void TemplateRace::Tried(size_t runner, double best_seconds) {
  ++runners_[runner].turns;
  Improved(runner, best_seconds);
}

void TemplateRace::Improved(size_t runner, double best_seconds) {
  runners_[runner].best_seconds = std::min(runners_[runner].best_seconds, best_seconds);
}

}  // namespace tilesmith
