#include "ops/conv/conv_data.h"

namespace tilesmith {

ConvTensors ConvData::tensors() const {
  const auto pointer = [](const std::optional<Tensor>& tensor) { return tensor ? &*tensor : nullptr; };
  return {.input = &input,
          .weights = &weights,
          .bias = pointer(bias),
          .residual = pointer(residual),
          .scale = pointer(scale),
          .shift = pointer(shift),
          .before_weights = pointer(before_weights),
          .before_bias = pointer(before_bias)};
}

ConvData MakeConvData(const ConvWorkload& w, const std::function<void(Tensor&)>& fill) {
  const auto make = [&](const Shape& shape) {
    Tensor tensor(shape);
    fill(tensor);
    return tensor;
  };
  ConvData data;
  data.input = make(w.input_shape());
  data.weights = make(w.weights_shape());
  if (w.post.bias) data.bias = make({w.oc});
  if (w.post.sum) data.residual = make(w.output_shape());
  if (w.pre.scale_shift) {
    data.scale = make({w.ic});
    data.shift = make({w.ic});
  }
  for (const ConvWorkload& first : w.before) {
    data.before_weights = make(first.weights_shape());
    if (first.post.bias) data.before_bias = make({first.oc});
  }
  return data;
}

}  // namespace tilesmith
