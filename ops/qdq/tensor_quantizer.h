// Floats as 8-bit integers: which scale and zero point a range of values needs, and weights and biases in
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layouts/tensor.h"

namespace tilesmith {

struct ValueRange {
  double low = 0, high = 0;
  bool operator==(const ValueRange&) const = default;
};

// value = scale * (stored - zero_point), stored in 8 bits of `type`, kU8 or kI8.
struct TensorQuantizer {
  float scale = 1;
  int32_t zero_point = 0;
  DataType type = DataType::kU8;
  bool operator==(const TensorQuantizer&) const = default;
};

struct IntegerForm {
  DataType type = DataType::kU8;  // or kI8
  bool symmetric = false;         // the zero point is in the middle: 128, or 0
};
// "u8", "i8", "i8-symmetric", what activations may be; the name of one of these; and the inverse, which
// throws Error(kUsage) naming the text.
const std::vector<std::string>& ActivationNames();
std::string ActivationName(const IntegerForm& form);
IntegerForm ParseActivations(const std::string& text);

// For values between the ends, and 0, which is always exact. A range of nothing but 0 has scale 1, and no
// scale is less than the smallest normal float. Precondition: finite ends, low <= high.
TensorQuantizer QuantizerFor(const ValueRange& range, const IntegerForm& form);

// The nearest integer, ties to even, or the nearest end of the type's range. Precondition: no NaN.
int32_t StoredValue(double value, const TensorQuantizer& quantizer);
// Every value so. The tensor is plain floats, the result of the quantizer's type.
Tensor StoredTensor(const Tensor& values, const TensorQuantizer& quantizer);

// Which channel of an axis an element of a plain tensor belongs to; axis -1: all to one.
struct ChannelOrder {
  int64_t channels = 1, inner = 1;
  ChannelOrder(const Shape& shape, int axis);
  int64_t Of(int64_t element) const { return element / inner % channels; }
};

// Quantised biases are at most so large: the sum of the products, each at most 255 * 127, of 33,000 inputs
// still fits into 32 bits with them.
constexpr int32_t kMaxQuantizedBias = 1 << 30;

constexpr int kLargestWeight = 127;
// The largest weight that leaves room for the sum of two products in 16 bits: 2 * 255 * 64 < 2^15.
constexpr int kLargestReducedWeight = 63;

struct WeightForm {
  int axis = -1;                 // of the output channels, each with a scale of its own; -1: one for all
  int largest = kLargestWeight;  // stored values are within -largest..largest
  float input_scale = 1;         // a bias has scale input_scale * the weights'
  const Tensor* bias = nullptr;  // may be null; value i belongs to channel i % channels
};

struct QuantizedWeights {
  Tensor values;              // kI8, symmetric
  std::vector<float> scales;  // of each channel
  Tensor bias;                // kI32, of the bias's shape
  std::vector<float> bias_scales;
  int64_t raised = 0;  // channels whose scale the bias, not the weights, decided
};

// scale[c] = max |weights of c| / largest, or what brings the bias of c within kMaxQuantizedBias, if that is
// more; 1 for a channel of zeros without bias. Both are rounded to nearest, ties to even. Preconditions:
// plain, finite floats; input_scale > 0; the bias's size is a multiple of the number of channels.
QuantizedWeights QuantizeWeights(const Tensor& weights, const WeightForm& form);

}  // namespace tilesmith
