#include "graph_tuner/check/step_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph_tuner/check/compare.h"

namespace tilesmith {

StepCheck CompareStep(const Tensor& got, const Tensor& exact, const Tensor& bound, bool may_spread) {
  StepCheck check;
  if (exact.type() != DataType::kF32) {
    int64_t first = 0;
    const int64_t different = CountDifferent(got, exact, &first);
    if (different == 0) return check;
    check.wrong = fmt::format("{} is {}, should be {} ({} of {} elements are wrong)",
                              DescribeElement(exact.shape(), first), ElementText(got, first),
                              ElementText(exact, first), different, exact.size());
    return check;
  }
  double worst = -1;
  int64_t wrong = 0, worst_wrong = 0;
  for (int64_t i = 0; i < exact.size(); ++i) {
    const float have = got.floats()[i], want = exact.floats()[i];
    if (SameNonFinite(have, want)) continue;
    const bool numbers = std::isfinite(have) && std::isfinite(want);
    if (!numbers && may_spread && std::isfinite(want)) {
      ++check.spread;
      continue;
    }
    const double allowed = bound.floats()[i], difference = std::abs(double{have} - want);
    if (numbers && !std::isfinite(allowed)) continue;
    if (numbers && difference <= std::min(worst, 1.0) * allowed) continue;
    const double ratio = !numbers         ? INFINITY
                         : allowed > 0    ? difference / allowed
                         : difference > 0 ? INFINITY
                                          : 0;
    wrong += ratio > 1;
    if (!(ratio > worst)) continue;
    worst = ratio;
    check.difference = difference;
    check.allowed = allowed;
    worst_wrong = i;
  }
  if (wrong > 0) {
    check.wrong = fmt::format("{} is {:.9g}, should be {:.9g} +- {:.2g} ({} of {} elements are wrong)",
                              DescribeElement(exact.shape(), worst_wrong), got.floats()[worst_wrong],
                              exact.floats()[worst_wrong], check.allowed, wrong, exact.size());
  }
  return check;
}

}  // namespace tilesmith
