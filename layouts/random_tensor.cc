#include "layouts/random_tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "layouts/base/split_mix.h"

namespace tilesmith {

Tensor RandomTensor(const Shape& shape, uint64_t seed) {
  Tensor tensor(shape);
  SplitMix64 random(seed * 0x9E3779B97F4A7C15u + 1);
  float* data = tensor.floats();
  for (int64_t i = 0, n = tensor.size(); i < n; ++i)
    data[i] = static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(random.Next() >> 32))) * 0x1p-31f;
  return tensor;
}

Tensor RandomInput(const Shape& shape, DataType type, uint64_t seed) {
  Tensor floats = RandomTensor(shape, seed);
  if (type == DataType::kF32) return floats;
  Tensor tensor(shape, Layout::Nchw(type));
  if (!IsFloating(type) && type != DataType::kU8) return tensor;
  VisitType(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    std::transform(floats.floats(), floats.floats() + floats.size(), tensor.data<T>(), [](float value) {
      return ConvertElement<T>(std::is_same_v<T, uint8_t> ? (value + 1) * 128 : value);
    });
  });
  return tensor;
}

double RelativeDifference(const Tensor& actual, const Tensor& expected) {
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double want = expected.floats()[i];
    const double error = std::abs(actual.floats()[i] - want);
    if (std::isnan(error)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(want));
    difference = std::max(difference, error);
  }
  return largest > 0 ? difference / largest : difference;
}

}  // namespace tilesmith
