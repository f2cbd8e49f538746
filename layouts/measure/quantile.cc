#include "layouts/measure/quantile.h"

#include <algorithm>
#include <cmath>

#include "layouts/base/check.h"

namespace tilesmith {

double Quantile(std::vector<double> values, double q) {
  TILESMITH_CHECK(!values.empty() && q >= 0 && q <= 1);
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], position - static_cast<double>(below));
}

}  // namespace tilesmith
