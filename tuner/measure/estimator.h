// The statistic of a trial's samples.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "layouts/measure/quantile.h"

namespace tilesmith {

constexpr const char* kEstimatorName = "p25";

// The lower quartile (layouts/measure/quantile.h says why), in the samples' unit. Precondition: not empty.
inline double Estimate(std::span<const double> samples) {
  return LowerQuartile(std::vector<double>(samples.begin(), samples.end()));
}

// One standard error of Estimate, relative to it; 0 (unknown) for fewer than two samples.
//
// A q-quantile of n samples has the variance q (1 - q) / (n f^2), f being the density there. Disturbances
// only stretch the upper half, so f is that of a normal whose sigma is the distance from the lower quartile
// to the median / 0.674: at the quartile f = 0.318 / sigma, hence 1.36 sigma / sqrt(n). To it comes, in
// quadrature, what differs from one trial of a config to the next even where the samples of each agree: where
// its buffers lie and what state the machine is in.
inline double RelativeError(std::span<const double> samples) {
  if (samples.size() < 2) return 0;
  constexpr double kBetweenTrials = 0.005;
  const std::vector<double> all(samples.begin(), samples.end());
  const double quartile = LowerQuartile(all);
  const double sigma = (Quantile(all, 0.5) - quartile) / 0.674;
  return std::hypot(1.36 * sigma / (quartile * std::sqrt(static_cast<double>(all.size()))), kBetweenTrials);
}

}  // namespace tilesmith
