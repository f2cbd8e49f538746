#include "ops/base/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "ops/base/elements.h"

namespace tilesmith {
namespace {

// Calls body(i, k) for every element i of a tensor, whose scale is number k.
template <typename Body>
void ForEachScaled(const Shape& shape, const Quantization& quantization, const Body& body) {
  const int64_t count = ElementCount(shape);
  if (quantization.per_tensor()) {
    for (int64_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
  const int64_t inner = DenseStrides(shape)[quantization.axis], size = shape[quantization.axis];
  const int64_t block = quantization.block, blocks = block > 0 ? CeilDiv(size, block) : 0;
  if (block == 0) {
    for (int64_t i = 0; i < count; ++i) body(i, i / inner % size);
    return;
  }
  for (int64_t i = 0; i < count; i += inner) {
    const int64_t first = (i / inner / size * blocks + i / inner % size / block) * inner;
    for (int64_t k = 0; k < inner; ++k) body(i + k, first + k);
  }
}

}  // namespace

StoredRange RangeOf(DataType type) {
  switch (type) {
    case DataType::kU8:
      return {0, 255};
    case DataType::kI8:
      return {-128, 127};
    case DataType::kU16:
      return {0, 65535};
    default:
      TILESMITH_CHECK(type == DataType::kI16, "{} stores no quantised numbers", DataTypeName(type));
      return {-32768, 32767};
  }
}

int32_t QuantizedValue(float real, float scale, int32_t zero_point, StoredRange range) {
  const float low = static_cast<float>(range.low - zero_point);
  const float high = static_cast<float>(range.high - zero_point);
  const float quotient = real / scale;
  if (!(quotient > low)) return range.low;
  return static_cast<int32_t>(std::nearbyint(std::min(quotient, high))) + zero_point;
}

Quantization QuantizationOf(const Tensor& scales, const Tensor* zero_points, DataType type, int64_t axis,
                            int64_t block) {
  const auto refuse = [](const std::string& reason) { throw Error(ErrorCode::kBadModel, reason); };
  if (!IsFloating(scales.type())) refuse("its scales are no floats");
  if (scales.shape().size() > 1 && scales.size() != 1 && block == 0) {
    refuse(fmt::format("its scales have the shape {}, and no block_size", ShapeToString(scales.shape())));
  }
  Quantization result{type, axis, ElementsAs<float>(scales),
                      std::vector<int32_t>(static_cast<size_t>(scales.size()), 0), block};
  if (zero_points == nullptr) return result;
  if (zero_points->type() != type) {
    refuse(fmt::format("its zero point is of type {}, what is stored of type {}",
                       DataTypeName(zero_points->type()), DataTypeName(type)));
  }
  if (zero_points->size() != scales.size()) {
    refuse(fmt::format("it has {} scales and {} zero points", scales.size(), zero_points->size()));
  }
  result.zero_points = ElementsAs<int32_t>(*zero_points);
  if (type == DataType::kI32 && std::ranges::any_of(result.zero_points, [](int32_t z) { return z != 0; })) {
    refuse("a zero point other than 0 of type i32");
  }
  return result;
}

Shape BlockedShape(Shape shape, int64_t axis, int64_t block) {
  shape[axis] = CeilDiv(shape[axis], block);
  return shape;
}

void CheckFits(const Quantization& quantization, const Shape& shape) {
  if (quantization.per_tensor()) return;
  const auto rank = std::ssize(shape);
  const auto scales = std::ssize(quantization.scales);
  const auto [axis, block] = std::pair(quantization.axis, quantization.block);
  if (axis >= 0 && axis < rank &&
      scales == (block > 0 ? ElementCount(BlockedShape(shape, axis, block)) : shape[axis])) {
    return;
  }
  throw Error(ErrorCode::kBadModel,
              fmt::format("{} scales along axis {}{} do not fit the shape {}", scales, axis,
                          block > 0 ? fmt::format(" in blocks of {}", block) : "", ShapeToString(shape)));
}

std::string Describe(const Quantization& quantization) {
  std::string text = fmt::format(" {}", DataTypeName(quantization.type));
  if (quantization.per_tensor()) return text;
  text += fmt::format(" along {}", quantization.axis);
  return quantization.block == 0 ? text : text + fmt::format(" in blocks of {}", quantization.block);
}

Tensor Quantized(const Tensor& reals, const Quantization& quantization) {
  Tensor out(reals.shape(), Layout::Nchw(quantization.type));
  const StoredRange range = RangeOf(quantization.type);
  VisitType(quantization.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T* const to = out.data<T>();
    ForEachScaled(out.shape(), quantization, [&](int64_t i, int64_t k) {
      to[i] = static_cast<T>(
          QuantizedValue(reals.floats()[i], quantization.scales[k], quantization.zero_points[k], range));
    });
  });
  return out;
}

Tensor Dequantized(const Tensor& stored, const Quantization& quantization) {
  Tensor out(stored.shape());
  VisitType(stored.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T* const from = stored.data<T>();
    ForEachScaled(out.shape(), quantization, [&](int64_t i, int64_t k) {
      const int64_t steps = static_cast<int64_t>(from[i]) - quantization.zero_points[k];
      out.floats()[i] = static_cast<float>(steps) * quantization.scales[k];
    });
  });
  return out;
}

}  // namespace tilesmith
