#include "tuner/measure/pooled_trials.h"

#include <utility>

#include "tuner/measure/estimator.h"

namespace tilesmith {

TrialResult Pooled(const TrialResult& before, TrialResult again) {
  again.sample_seconds.insert(again.sample_seconds.begin(), before.sample_seconds.begin(),
                              before.sample_seconds.end());
  if (again.status == TrialStatus::kOk) again.seconds = Estimate(again.sample_seconds);
  return again;
}

std::vector<TrialResult> MeasureInTurns(std::span<const TrialRequest> requests, int rounds,
                                        Measurer& measurer, const std::function<bool()>& stopped) {
  std::vector<TrialResult> results(requests.size());
  for (int round = 0; round < rounds; ++round) {
    std::vector<TrialResult> after = results;
    for (size_t i = 0; i < requests.size(); ++i) {
      if (results[i].status != TrialStatus::kOk) continue;
      if (stopped()) return results;
      after[i] = Pooled(results[i], measurer.Measure(requests[i]));
    }
    results = std::move(after);
  }
  return results;
}

}  // namespace tilesmith
