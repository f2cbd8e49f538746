#include "tuner/simulation/regret.h"

#include <algorithm>
#include <limits>

#include "tuner/search/searcher.h"

namespace tilesmith {

std::vector<double> Replay(const MeasuredSpace& measured, std::string_view searcher,
                           const ReplayOptions& options) {
  const ConfigSpace space = SpaceOf(measured);
  const auto maker = FindSearcher(searcher).make;
  const auto search = maker({.workload = measured.workload,
                             .cpu = measured.target,
                             .conv_template = &FindConvTemplate(measured.template_name),
                             .space = space,
                             .seed = options.seed,
                             .conditions = measured.conditions,
                             .history = options.history});
  std::vector<double> curve;
  double best = std::numeric_limits<double>::infinity();
  while (static_cast<int>(curve.size()) < options.trials) {
    const auto left = static_cast<size_t>(options.trials) - curve.size();
    const std::vector<Config> batch = search->NextBatch(std::min<size_t>(options.batch, left));
    if (batch.empty()) break;
    std::vector<TrialOutcome> outcomes;
    for (const Config& config : batch) {
      const std::optional<double> seconds = measured.seconds.at(*space.IndexOf(config));
      outcomes.push_back({config, seconds});
      if (seconds) best = std::min(best, *seconds);
      curve.push_back(best);
    }
    search->Update(outcomes);
  }
  return curve;
}

int TrialsUntil(std::span<const double> curve, double true_best, double slack) {
  const auto reached =
      std::find_if(curve.begin(), curve.end(), [&](double best) { return best <= true_best * (1 + slack); });
  return static_cast<int>(reached - curve.begin()) + 1;
}

double RegretAfter(std::span<const double> curve, double true_best, int trials) {
  if (curve.empty()) return std::numeric_limits<double>::infinity();
  return curve[std::min<size_t>(trials, curve.size()) - 1] / true_best - 1;
}

double ShareWithin(const MeasuredSpace& measured, double slack) {
  const double limit = TrueBest(measured) * (1 + slack);
  int64_t within = 0;
  for (const auto& [index, seconds] : measured.seconds) within += seconds && *seconds <= limit;
  return static_cast<double>(within) / static_cast<double>(measured.seconds.size());
}

}  // namespace tilesmith
