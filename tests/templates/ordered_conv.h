// A conv added up in the order of ops/order.md, by std::fma, one output at a time: what every template has to
// give on a reproducible target, bit for bit.
#pragma once

#include <algorithm>
#include <cmath>

#include "layouts/tensor.h"
#include "ops/conv/conv.h"
#include "ops/conv/workload.h"

namespace tilesmith {

// Activations of whole floats, each operation of them rounded.
inline float OrderedActivation(const Activation& activation, float x) {
  const auto between = [](float value, float low, float high) {
    value = value < low ? low : value;
    return value > high ? high : value;
  };
  switch (activation.kind) {
    case ActivationKind::kRelu:
      return x < 0 ? 0 : x;
    case ActivationKind::kClip:
      return between(x, activation.alpha, activation.beta);
    case ActivationKind::kLeakyRelu:
      return x >= 0 ? x : activation.alpha * x;
    case ActivationKind::kHardSigmoid:
      return between(std::fma(activation.alpha, x, activation.beta), 0, 1);
    case ActivationKind::kHardSwish:
      return x * between(std::fma(x, 1.0F / 6, 0.5F), 0, 1);
    default:
      return x;
  }
}

// Precondition: not a product; `w` is not fused.
inline Tensor OrderedPlainConv(const ConvWorkload& w, const Tensor& input, const Tensor& weights,
                               const Tensor* bias, const Tensor* residual) {
  Tensor output(w.output_shape());
  const int64_t channels = w.ic / w.g;
  float* out = output.floats();
  for (int64_t n = 0; n < w.mb; ++n) {
    for (int64_t o = 0; o < w.oc; ++o) {
      const float* image = input.floats() + (n * w.ic + o / (w.oc / w.g) * channels) * w.ih * w.iw;
      for (int64_t y = 0; y < w.oh; ++y) {
        for (int64_t x = 0; x < w.ow; ++x, ++out) {
          float sum = bias != nullptr ? bias->floats()[o] : 0;
          if (residual != nullptr) sum += residual->floats()[out - output.floats()];
          const float* weight = weights.floats() + o * channels * w.kh * w.kw;
          for (int64_t c = 0; c < channels; ++c) {
            for (int64_t i = 0; i < w.kh; ++i) {
              for (int64_t j = 0; j < w.kw; ++j, ++weight) {
                const int64_t row = y * w.sh - w.ph + i * (w.dh + 1);
                const int64_t column = x * w.sw - w.pw + j * (w.dw + 1);
                if (row < 0 || row >= w.ih || column < 0 || column >= w.iw) continue;
                sum = std::fma(image[(c * w.ih + row) * w.iw + column], *weight, sum);
              }
            }
          }
          *out = OrderedActivation(w.post.activation, sum);
        }
      }
    }
  }
  return output;
}

// Precondition: not a product.
inline Tensor OrderedConv(const ConvWorkload& w, const ConvTensors& tensors) {
  if (!w.before.empty()) {
    const Tensor main =
        OrderedPlainConv(w.before[0], *tensors.input, *tensors.before_weights, tensors.before_bias, nullptr);
    return OrderedPlainConv(w.main_conv(), main, *tensors.weights, tensors.bias, tensors.residual);
  }
  Tensor main(w.main_conv().input_shape());
  std::copy_n(tensors.input->floats(), main.size(), main.floats());
  const int64_t plane = w.ih * w.iw;
  for (int64_t i = 0; i < main.size() && w.pre.any(); ++i) {
    float& x = main.floats()[i];
    if (w.pre.scale_shift)
      x = std::fma(x, tensors.scale->floats()[i / plane % w.ic], tensors.shift->floats()[i / plane % w.ic]);
    x = OrderedActivation(w.pre.activation, x);
  }
  return OrderedPlainConv(w.main_conv(), main, *tensors.weights, tensors.bias, tensors.residual);
}

}  // namespace tilesmith
