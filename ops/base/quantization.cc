#include "ops/base/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "ops/base/elements.h"

namespace tilesmith {
namespace {

// Elements of a tensor, side by side, whose scales are one, or side by side as well.
struct ScaledRun {
  int64_t first = 0, count = 0;
  int64_t scale = 0;  // the first one's
  bool one_scale = true;
};

// Calls visit(ScaledRun) for all elements of a tensor.
template <typename Visit>
void ForEachRun(const Shape& shape, const Quantization& quantization, const Visit& visit) {
  const int64_t count = ElementCount(shape);
  if (quantization.per_tensor()) return visit(ScaledRun{0, count, 0, true});
  const int64_t inner = DenseStrides(shape)[quantization.axis], size = shape[quantization.axis];
  if (quantization.block > 0) {
    const int64_t blocks = CeilDiv(size, quantization.block);
    for (int64_t i = 0; i < count; i += inner) {
      const int64_t scale = (i / inner / size * blocks + i / inner % size / quantization.block) * inner;
      visit(ScaledRun{i, inner, scale, false});
    }
  } else if (inner == 1) {
    for (int64_t i = 0; i < count; i += size) visit(ScaledRun{i, size, 0, false});
  } else {
    for (int64_t i = 0; i < count; i += inner) visit(ScaledRun{i, inner, i / inner % size, true});
  }
}

// to[i] = convert(from[i], scale, zero point) for all elements.
template <typename From, typename To, typename Convert>
void ConvertScaled(const From* from, To* to, const Shape& shape, const Quantization& quantization,
                   const Convert& convert) {
  ForEachRun(shape, quantization, [&](const ScaledRun& run) {
    const float* const scales = quantization.scales.data() + run.scale;
    const int32_t* const zero_points = quantization.zero_points.data() + run.scale;
    const From* const in = from + run.first;
    To* const out = to + run.first;
    if (!run.one_scale) {
      for (int64_t i = 0; i < run.count; ++i) out[i] = convert(in[i], scales[i], zero_points[i]);
      return;
    }
    const float scale = *scales;
    const int32_t zero_point = *zero_points;
    for (int64_t i = 0; i < run.count; ++i) out[i] = convert(in[i], scale, zero_point);
  });
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

std::optional<StoredRange> Clamped(const Activation& activation, const Quantization& output,
                                   StoredRange limits) {
  const StoredRange range = RangeOf(output.type);
  const auto stored = [&](float bound) {
    return QuantizedValue(bound, output.scales[0], output.zero_points[0], range);
  };
  const bool relu = activation.kind == ActivationKind::kRelu;
  if (!relu && activation.kind != ActivationKind::kClip) return std::nullopt;
  if (!relu && !(activation.alpha <= activation.beta)) return std::nullopt;
  limits.low = std::max(limits.low, stored(relu ? 0.0f : activation.alpha));
  if (!relu) limits.high = std::min(limits.high, stored(activation.beta));
  if (limits.low > limits.high) return std::nullopt;
  return limits;
}

bool ByteForm::KeepsBytes() const {
  return limits == RangeOf(output.type) &&
         std::ranges::all_of(inputs, [&](const Quantization& input) { return input == output; });
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
    ConvertScaled(reals.floats(), out.data<T>(), out.shape(), quantization,
                  [range](float real, float scale, int32_t zero_point) {
                    return static_cast<T>(QuantizedValue(real, scale, zero_point, range));
                  });
  });
  return out;
}

Tensor Dequantized(const Tensor& stored, const Quantization& quantization) {
  Tensor out(stored.shape(), Layout::Nchw(), NewMemory::kAnything);
  VisitType(stored.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    // Of 32 bits there is no zero point but 0, so that these steps are enough where numbers are no larger.
    using Steps = std::conditional_t<std::is_integral_v<T> && (sizeof(T) < 4 || std::is_same_v<T, int32_t>),
                                     int32_t, int64_t>;
    ConvertScaled(stored.data<T>(), out.floats(), out.shape(), quantization,
                  [](T number, float scale, int32_t zero_point) {
                    return static_cast<float>(static_cast<Steps>(number) - zero_point) * scale;
                  });
  });
  return out;
}

}  // namespace tilesmith
