#include "graph_tuner/check/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace tilesmith {

bool SameNonFinite(float a, float b) { return std::isnan(a) ? std::isnan(b) : std::isinf(a) && a == b; }

TensorDifference CompareTensors(const Tensor& actual, const Tensor& expected) {
  TensorDifference result;
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const float got = actual.floats()[i], want = expected.floats()[i];
    if (std::isfinite(got) && std::isfinite(want)) {
      largest = std::max(largest, std::abs(double{want}));
      difference = std::max(difference, std::abs(double{got} - want));
    } else if (SameNonFinite(got, want)) {
      ++result.not_numbers;
    } else if (result.one_sided < 0) {
      result.one_sided = i;
    }
  }
  result.relative = largest > 0 ? difference / largest : difference;
  return result;
}

std::string DescribeElement(const Shape& shape, int64_t element) {
  std::vector<int64_t> index(shape.size());
  int64_t rest = element;
  for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) index[axis] = rest % shape[axis];
  return fmt::format("element {} ({})", element, fmt::join(index, ", "));
}

}  // namespace tilesmith
