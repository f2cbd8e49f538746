// The statistic of a trial's samples.
#pragma once

#include <span>
#include <vector>

#include "layouts/base/quantile.h"

namespace tilesmith {

constexpr const char* kEstimatorName = "p25";

// The lower quartile (layouts/base/quantile.h says why), in the samples' unit. Precondition: not empty.
inline double Estimate(std::span<const double> samples) {
  return LowerQuartile(std::vector<double>(samples.begin(), samples.end()));
}

}  // namespace tilesmith
