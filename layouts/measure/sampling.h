// Samples of one thing's time, one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "layouts/measure/clock.h"

namespace tilesmith {

// How many samples are taken: at least min_samples, then more until max_samples or the time is used up.
struct SamplingPlan {
  int64_t min_samples = 5;
  int64_t max_samples = 20;
  double seconds = 2e-3;

  bool WantsMore(size_t taken, double spent_seconds) const {
    const auto samples = static_cast<int64_t>(taken);
    return samples < max_samples && (samples < min_samples || spent_seconds < seconds);
  }
};

// Appends what `take()` returns, the seconds of a run, until the plan wants no more. The samples that are
// there count, and the time since `begin`. Whatever `take` throws goes through, and leaves the samples taken
// so far.
template <typename Take>
void TakeSamples(const SamplingPlan& plan, const Take& take, std::vector<double>& samples,
                 double begin = NowSeconds()) {
  while (plan.WantsMore(samples.size(), NowSeconds() - begin)) samples.push_back(take());
}

// So many runs of `run`, without one to warm up.
template <typename Run>
std::vector<double> TimeRuns(int64_t runs, const Run& run) {
  std::vector<double> samples;
  TakeSamples(
      {.min_samples = runs, .max_samples = runs, .seconds = 0}, [&] { return SecondsOf(run); }, samples);
  return samples;
}

}  // namespace tilesmith
