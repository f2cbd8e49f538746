#include "tools/cli/time_share.h"

#include <algorithm>
#include <numeric>

#include "layouts/base/check.h"

namespace tilesmith {

double TimeShare(double seconds_left, std::span<const double> weights_left) {
  constexpr double kEven = 1.0 / 3;
  TILESMITH_CHECK(!weights_left.empty());
  const double total = std::accumulate(weights_left.begin(), weights_left.end(), 0.0);
  const double fraction = kEven / double(weights_left.size()) + (1 - kEven) * weights_left[0] / total;
  return std::max(seconds_left, 0.0) * fraction;
}

}  // namespace tilesmith
