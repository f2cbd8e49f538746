#include "ops/quantize/quantized_data.h"

#include <algorithm>
#include <cmath>

#include "layouts/base/check.h"
#include "layouts/base/split_mix.h"

namespace tilesmith {
namespace {

uint8_t AnyByte(SplitMix64& random) { return static_cast<uint8_t>(random.Next() >> 56); }

Tensor Bytes(SplitMix64& random, const Shape& shape, DataType type) {
  Tensor tensor(shape, Layout::Nchw(type));
  std::generate_n(reinterpret_cast<uint8_t*>(tensor.raw()), tensor.size(), [&] { return AnyByte(random); });
  return tensor;
}

// Numbers from 0 to 2 * most, less `most` where they are bytes with a sign; else one of them is farther from
// their zero point than those are.
Tensor Weights(SplitMix64& random, const ConvWorkload& w, int64_t most) {
  Tensor tensor(w.weights_shape(), Layout::Nchw(w.bytes->weights));
  std::generate_n(reinterpret_cast<uint8_t*>(tensor.raw()), tensor.size(), [&] {
    const int64_t value = int64_t{AnyByte(random)} % (2 * most + 1);
    return static_cast<uint8_t>(w.bytes->weights == DataType::kI8 ? value - most : value);
  });
  if (w.bytes->weights == DataType::kU8) reinterpret_cast<uint8_t*>(tensor.raw())[0] = 255;
  return tensor;
}

// Near the mean of what is stored, so that sums are around 0.
int32_t MiddleOf(DataType type) { return type == DataType::kU8 ? 128 : -1; }

}  // namespace

std::vector<const Tensor*> QuantizedData::inputs() const {
  std::vector<const Tensor*> tensors = {&input};
  if (residual) tensors.push_back(&*residual);
  return tensors;
}

QuantizedData MakeQuantizedData(const ConvWorkload& w, uint64_t seed) {
  TILESMITH_CHECK(w.bytes.has_value(), "{}", WorkloadToString(w));
  constexpr float kInputScale = 1.0F / 64, kWeightScale = 1.0F / 256;
  constexpr double kInputSpread = 74, kOutputSpread = 50;  // root mean squares of what is stored
  const auto& [in, weights, out] = *w.bytes;
  SplitMix64 random(seed);
  const auto terms = static_cast<double>(ElementCount(w.weights_shape()) / w.oc);
  const auto most = std::clamp<int64_t>(static_cast<int64_t>(0x1p30 / (256 * terms)), 1, 127);
  QuantizedConvParams params{.input = {in, 0, {kInputScale}, {MiddleOf(in)}},
                             .weights = {std::make_shared<const Tensor>(Weights(random, w, most)),
                                         {weights,
                                          0,
                                          {kWeightScale},
                                          {weights == DataType::kU8 ? static_cast<int32_t>(most) - 1 : 0}}},
                             .bias = nullptr,
                             .output = {out, 0, {}, {}},
                             .limits = {}};
  if (w.post.bias) {
    Tensor bias({w.oc}, Layout::Nchw(DataType::kI32));
    std::generate_n(bias.data<int32_t>(), bias.size(), [&] { return int32_t{AnyByte(random)} - 128; });
    params.bias = std::make_shared<const Tensor>(std::move(bias));
  }
  if (out != DataType::kF32) {
    const double spread = std::sqrt(terms) * kInputSpread * static_cast<double>(most) * 0.6;
    params.output.scales = {static_cast<float>(kInputScale * kWeightScale * spread / kOutputSpread)};
    params.output.zero_points = {MiddleOf(out)};
    params.limits = RangeOf(out);
  }
  QuantizedData data{.op = nullptr, .input = Bytes(random, w.input_shape(), in), .residual = std::nullopt};
  if (w.post.sum) {
    const float scale = params.output.scales[0];
    params.sum = {.residual = {out, 0, {0.7F * scale}, {MiddleOf(out)}},
                  .output = {out, 0, {1.3F * scale}, {MiddleOf(out)}},
                  .limits = RangeOf(out)};
    data.residual = Bytes(random, w.output_shape(), out);
  }
  data.op = std::make_shared<const QuantizedConvOp>(w, std::move(params));
  return data;
}

}  // namespace tilesmith
