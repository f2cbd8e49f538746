// Dense layers and matrix products.
#pragma once

#include "ops/base/activation.h"
#include "ops/base/op_registry.h"

namespace tilesmith {

// out[..., n] = act(sum_k in[..., k] * weights[k, n] + bias[n]), in plain layout, leading sizes kept.
// ONNX's alpha, beta, transA and transB are resolved at import.
class GemmOp : public Op {
 public:
  // weights: {K, N}; bias: N floats or null.
  GemmOp(std::shared_ptr<const Tensor> weights, std::shared_ptr<const Tensor> bias,
         Activation activation = {});
  const std::shared_ptr<const Tensor>& weights() const { return weights_; }
  const std::shared_ptr<const Tensor>& bias() const { return bias_; }
  const Activation& activation() const { return activation_; }
  int64_t k() const { return weights_->shape()[0]; }
  int64_t n() const { return weights_->shape()[1]; }

  std::string_view Type() const override { return "Gemm"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  double Flops(std::span<const Shape> inputs) const override;
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }

 private:
  std::shared_ptr<const Tensor> weights_, bias_;
  Activation activation_;
};

// numpy.matmul of two activations of rank >= 2, batch sizes broadcast. Slow.
class MatMulOp : public Op {
 public:
  std::string_view Type() const override { return "MatMul"; }
  std::string Signature() const override { return "MatMul"; }
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  double Flops(std::span<const Shape> inputs) const override;
};

// Gemm (constant B, C constant and the same for every row), MatMul.
std::vector<OpImporter> GemmImporters();

}  // namespace tilesmith
