#include "ops/qdq/tensor_quantizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "layouts/base/check.h"
#include "layouts/base/error.h"

namespace tilesmith {
namespace {

constexpr float kSmallestScale = std::numeric_limits<float>::min();
constexpr float kLargestScale = std::numeric_limits<float>::max();

std::pair<int32_t, int32_t> StoredEnds(DataType type) {
  return type == DataType::kU8 ? std::pair{0, 255} : std::pair{-128, 127};
}

float ScaleWithin(double scale, double lowest) {
  return static_cast<float>(std::clamp<double>(scale, lowest, kLargestScale));
}

template <typename T>
Tensor StoredAs(const Tensor& values, const TensorQuantizer& quantizer) {
  Tensor stored(values.shape(), Layout::Nchw(quantizer.type));
  for (int64_t i = 0; i < values.size(); ++i)
    stored.data<T>()[i] = static_cast<T>(StoredValue(values.floats()[i], quantizer));
  return stored;
}

}  // namespace

ChannelOrder::ChannelOrder(const Shape& shape, int axis) {
  if (axis < 0) return;
  channels = shape[axis];
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
}

const std::vector<std::string>& ActivationNames() {
  static const std::vector<std::string> names = {"u8", "i8", "i8-symmetric"};
  return names;
}

std::string ActivationName(const IntegerForm& form) {
  return fmt::format("{}{}", DataTypeName(form.type), form.symmetric ? "-symmetric" : "");
}

IntegerForm ParseActivations(const std::string& text) {
  const std::vector<std::string>& names = ActivationNames();
  if (std::ranges::find(names, text) == names.end()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("activations must be one of {}, got {}", fmt::join(names, ", "), text));
  }
  return {.type = text == "u8" ? DataType::kU8 : DataType::kI8, .symmetric = text == "i8-symmetric"};
}

TensorQuantizer QuantizerFor(const ValueRange& range, const IntegerForm& form) {
  TILESMITH_CHECK(range.low <= range.high && std::isfinite(range.low) && std::isfinite(range.high));
  const double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
  const auto [first, last] = StoredEnds(form.type);
  const int32_t middle = (first + last + 1) / 2;
  if (low == 0 && high == 0) return {1, form.symmetric ? middle : 0, form.type};
  if (form.symmetric) {
    return {ScaleWithin(std::max(-low, high) / (last - middle), kSmallestScale), middle, form.type};
  }
  const float scale = ScaleWithin((high - low) / (last - first), kSmallestScale);
  const double zero = std::nearbyint(first - low / static_cast<double>(scale));
  return {scale, static_cast<int32_t>(std::clamp<double>(zero, first, last)), form.type};
}

int32_t StoredValue(double value, const TensorQuantizer& quantizer) {
  const auto [first, last] = StoredEnds(quantizer.type);
  const double stored = std::nearbyint(value / static_cast<double>(quantizer.scale)) + quantizer.zero_point;
  return static_cast<int32_t>(std::clamp<double>(stored, first, last));
}

Tensor StoredTensor(const Tensor& values, const TensorQuantizer& quantizer) {
  return quantizer.type == DataType::kU8 ? StoredAs<uint8_t>(values, quantizer)
                                         : StoredAs<int8_t>(values, quantizer);
}

QuantizedWeights QuantizeWeights(const Tensor& weights, const WeightForm& form) {
  const ChannelOrder order(weights.shape(), form.axis);
  const int64_t biases = form.bias == nullptr ? 0 : form.bias->size();
  std::vector<double> largest_weight(order.channels), largest_bias(order.channels);
  for (int64_t i = 0; i < weights.size(); ++i) {
    double& largest = largest_weight[order.Of(i)];
    largest = std::max(largest, std::abs(static_cast<double>(weights.floats()[i])));
  }
  for (int64_t i = 0; i < biases; ++i) {
    double& largest = largest_bias[i % order.channels];
    largest = std::max(largest, std::abs(static_cast<double>(form.bias->floats()[i])));
  }

  QuantizedWeights result;
  const double input_scale = form.input_scale;
  // So that the bias's scale is a normal number too.
  const double smallest = std::max<double>(kSmallestScale, 2 * kSmallestScale / input_scale);
  for (int64_t c = 0; c < order.channels; ++c) {
    // One more than needed, since the bias's scale is a rounded product.
    const double for_bias = largest_bias[c] / input_scale / (kMaxQuantizedBias - 256);
    const double for_weights = largest_weight[c] / form.largest;
    result.raised += for_bias > for_weights;
    const double scale = std::max(for_bias, for_weights);
    result.scales.push_back(scale == 0 ? ScaleWithin(1, smallest) : ScaleWithin(scale, smallest));
  }
  result.values = Tensor(weights.shape(), Layout::Nchw(DataType::kI8));
  for (int64_t i = 0; i < weights.size(); ++i) {
    const double stored = std::nearbyint(static_cast<double>(weights.floats()[i]) /
                                         static_cast<double>(result.scales[order.Of(i)]));
    result.values.data<int8_t>()[i] =
        static_cast<int8_t>(std::clamp<double>(stored, -form.largest, form.largest));
  }
  if (biases == 0) return result;
  result.bias = Tensor(form.bias->shape(), Layout::Nchw(DataType::kI32));
  for (int64_t i = 0; i < biases; ++i) {
    const float scale = std::min(form.input_scale * result.scales[i % order.channels], kLargestScale);
    result.bias_scales.push_back(scale);
    const double stored =
        std::nearbyint(static_cast<double>(form.bias->floats()[i]) / static_cast<double>(scale));
    result.bias.data<int32_t>()[i] =
        static_cast<int32_t>(std::clamp<double>(stored, -kMaxQuantizedBias, kMaxQuantizedBias));
  }
  return result;
}

}  // namespace tilesmith
