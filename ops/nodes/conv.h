// Convolution with fused post-ops.
//
//   out[n, o, y, x] = act( bias[o] + residual[n, o, y, x]
//                          + sum_{c, i, j} in[n, g(o) * ic/g + c, y*sh - ph + i*(dh+1), x*sw - pw + j*(dw+1)]
//                                          * weights[o, c, i, j] )
// Inputs: data NCHW, then the residual when workload.post.sum. Out-of-range taps read zero.
#pragma once

#include "ops/op_registry.h"
#include "ops/workload.h"

namespace tilesmith {

class ConvOp : public Op {
 public:
  // weights: OIHW, workload.weights_shape(); bias: oc floats, or null exactly when !workload.post.bias.
  ConvOp(const ConvWorkload& workload, std::shared_ptr<const Tensor> weights,
         std::shared_ptr<const Tensor> bias);

  const ConvWorkload& workload() const { return workload_; }
  const std::shared_ptr<const Tensor>& weights() const { return weights_; }
  const std::shared_ptr<const Tensor>& bias() const { return bias_; }

  std::string_view Type() const override { return "Conv"; }
  std::string Signature() const override { return "Conv " + WorkloadToString(workload_); }
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  double Flops(std::span<const Shape> inputs) const override;

 private:
  ConvWorkload workload_;
  std::shared_ptr<const Tensor> weights_;
  std::shared_ptr<const Tensor> bias_;
};

// The formula above: plain tensors, each output accumulated in double, threaded over output channels when
// asked. bias and residual may be null.
Tensor ReferenceConv(const ConvWorkload& workload, const Tensor& input, const Tensor& weights,
                     const Tensor* bias, const Tensor* residual);

// One output element of the same formula in double, and the sum of the absolute values of its terms, from
// which rounding tolerances are derived: |float result - value| <= (terms + 2) * eps * magnitude.
struct ConvSample {
  double value = 0;      // after post-ops
  double magnitude = 0;  // sum |in * w| + |bias| + |residual|
};
ConvSample ReferenceConvAt(const ConvWorkload& workload, const Tensor& input, const Tensor& weights,
                           const Tensor* bias, const Tensor* residual, const Dims4& output_index);

// Conv: 2-D, constant weights and bias.
std::vector<OpImporter> ConvImporters();

}  // namespace tilesmith
