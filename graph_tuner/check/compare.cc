#include "graph_tuner/check/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "layouts/transform.h"

namespace tilesmith {

bool SameNonFinite(float a, float b) { return std::isnan(a) ? std::isnan(b) : std::isinf(a) && a == b; }

int64_t CountDifferent(const Tensor& actual, const Tensor& expected, int64_t* first) {
  const int64_t size = expected.layout().element_bytes();
  int64_t different = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (std::memcmp(actual.raw() + i * size, expected.raw() + i * size, size) == 0) continue;
    if (different++ == 0) *first = i;
  }
  return different;
}

TensorDifference CompareTensors(const Tensor& actual, const Tensor& expected) {
  TensorDifference result;
  const auto is_narrow = [](DataType type) { return IsFloating(type) && type != DataType::kF32; };
  if (is_narrow(actual.type()) || is_narrow(expected.type()))
    return CompareTensors(TransformGeneric(actual, Layout::Nchw()),
                          TransformGeneric(expected, Layout::Nchw()));
  if (expected.type() != DataType::kF32) {
    int64_t first = 0;
    const int64_t different = CountDifferent(actual, expected, &first);
    if (different > 0)
      result.relative = static_cast<double>(different) / static_cast<double>(expected.size());
    return result;
  }
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

std::string ElementText(const Tensor& tensor, int64_t element) {
  return VisitType(tensor.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T value = tensor.data<T>()[element];
    if constexpr (std::is_integral_v<T>) return fmt::format("{}", static_cast<int64_t>(value));
    return fmt::format("{}", static_cast<float>(value));
  });
}

std::string DescribeElement(const Shape& shape, int64_t element) {
  std::vector<int64_t> index(shape.size());
  int64_t rest = element;
  for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) index[axis] = rest % shape[axis];
  return fmt::format("element {} ({})", element, fmt::join(index, ", "));
}

}  // namespace tilesmith
