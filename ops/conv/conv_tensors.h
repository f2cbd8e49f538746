// What a conv computes on.
#pragma once

namespace tilesmith {

class Tensor;

// Plain tensors: input and weights (of a product its right side) always, the others null where the workload
// has none. scale and shift are the input ops', the last two belong to the conv fused in front.
struct ConvTensors {
  const Tensor* input = nullptr;    // workload.input_shape()
  const Tensor* weights = nullptr;  // the elements of workload.weights_shape()
  const Tensor* bias = nullptr;
  const Tensor* residual = nullptr;
  const Tensor* scale = nullptr;
  const Tensor* shift = nullptr;
  const Tensor* before_weights = nullptr;
  const Tensor* before_bias = nullptr;
};

}  // namespace tilesmith
