// Dense layers and matrix products.
#pragma once

#include "ops/base/activation.h"
#include "ops/base/op.h"
#include "ops/conv/conv.h"

namespace tilesmith {

// out[..., n] = act(sum_k in[..., k] * weights[n, k] + bias[n] + residual[..., n]), in plain layout, leading
// sizes kept. Inputs: data, then the residual when sum().
//
// Only the meaning: networks run it as a 1x1 convolution (LowerDense, passes.h). ONNX's alpha, beta, transA
// and transB are resolved at import.
class GemmOp : public Op {
 public:
  // weights: {N, K}, the order of a 1x1 convolution's; bias: N floats or null. What the weights were
  // dequantised from has the same order.
  GemmOp(std::shared_ptr<const Tensor> weights, std::shared_ptr<const Tensor> bias,
         Activation activation = {}, bool sum = false, StoredWeights stored = {});
  const std::shared_ptr<const Tensor>& weights() const { return weights_; }
  const std::shared_ptr<const Tensor>& bias() const { return bias_; }
  const Activation& activation() const { return activation_; }
  bool sum() const { return sum_; }
  const StoredWeights& stored() const { return stored_; }
  int64_t k() const { return weights_->shape()[1]; }
  int64_t n() const { return weights_->shape()[0]; }

  std::string_view Type() const override { return "Gemm"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override;
  double Flops(std::span<const Shape> inputs) const override;
  OpPtr WithActivation(const Activation& activation) const override;
  OpPtr WithResidual() const override;
  OpPtr WithScaleShift(const ScaleShiftOp& op, const Shape& output) const override;

 private:
  std::shared_ptr<const Tensor> weights_, bias_;
  Activation activation_;
  bool sum_;
  StoredWeights stored_;
};

}  // namespace tilesmith
