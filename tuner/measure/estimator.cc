#include "tuner/measure/estimator.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "layouts/base/check.h"

namespace tilesmith {

double Estimate(std::span<const double> samples) {
  TILESMITH_CHECK(!samples.empty());
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double position = 0.25 * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

}  // namespace tilesmith
