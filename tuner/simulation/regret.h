// How many trials a searcher needs: replays of a measured space.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tuner/cost_model/training_history.h"
#include "tuner/simulation/measured_space.h"

namespace tilesmith {

struct ReplayOptions {
  int trials = 300;
  int batch = 16;
  uint64_t seed = 1;
  std::shared_ptr<const TrainingHistory> history = nullptr;  // what the searcher may learn from
};

// The best time found after 1, 2, ... trials (failed ones count), at most options.trials of them; infinity
// while nothing has worked. Deterministic. Throws Error(kUsage) for unknown searchers and templates.
std::vector<double> Replay(const MeasuredSpace& measured, std::string_view searcher,
                           const ReplayOptions& options);

// Trials until the best found is within `slack` of `true_best` (0.05: five percent slower at most);
// curve.size() + 1 when it never was.
int TrialsUntil(std::span<const double> curve, double true_best, double slack);

// Best found after `trials` against the true best, less one; infinity for a curve without trials.
// Precondition: trials >= 1.
double RegretAfter(std::span<const double> curve, double true_best, int trials);

// Share of the configs that worked and are within `slack` of the best.
double ShareWithin(const MeasuredSpace& measured, double slack);

}  // namespace tilesmith
