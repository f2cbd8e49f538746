// Convolution with fused post-ops.
//
//   out[n, o, y, x] = act( bias[o] + residual[n, o, y, x]
//                          + sum_{c, i, j} in[n, g(o) * ic/g + c, y*sh - ph + i*(dh+1), x*sw - pw + j*(dw+1)]
//                                          * weights[o, c, i, j] )
// Inputs: data NCHW, then the residual when workload.post.sum. Out-of-range taps read zero.
#pragma once

#include "ops/base/op_registry.h"
#include "ops/conv/conv_tensors.h"
#include "ops/conv/convolution.h"

namespace tilesmith {

// What weights and bias were dequantised from, where they were.
struct StoredWeights {
  std::shared_ptr<const QuantizedTensor> weights, bias;
};

class ConvOp : public ConvolutionOp {
 public:
  // weights: OIHW, the elements of workload.weights_shape(); bias: oc floats, or null exactly when
  // !workload.post.bias. Precondition: !workload.fused(). What is in front of a conv in a network is a node
  // of its own.
  ConvOp(const ConvWorkload& workload, std::shared_ptr<const Tensor> weights,
         std::shared_ptr<const Tensor> bias, StoredWeights stored = {});

  const std::shared_ptr<const Tensor>& weights() const { return weights_; }
  const std::shared_ptr<const Tensor>& bias() const { return bias_; }
  const StoredWeights& stored() const { return stored_; }

  std::string_view Type() const override { return "Conv"; }
  std::string Signature() const override { return "Conv " + WorkloadToString(workload_); }
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  double Flops(std::span<const Shape> inputs) const override;

 private:
  std::shared_ptr<const Tensor> weights_;
  std::shared_ptr<const Tensor> bias_;
  StoredWeights stored_;
};

// The formula above, after what is fused in front of it: each output accumulated in double, threaded over
// output channels when asked. The tensor between two fused convs is one of floats.
Tensor ReferenceConv(const ConvWorkload& workload, const ConvTensors& tensors);
// The same for a workload with nothing in front. bias and residual may be null.
Tensor ReferenceConv(const ConvWorkload& workload, const Tensor& input, const Tensor& weights,
                     const Tensor* bias, const Tensor* residual);

// One output element of the same formula in double, and the sum of the absolute values of its terms, from
// which rounding tolerances are derived: |float result - value| <= (terms + 2) * eps * magnitude, where the
// terms of a conv fused in front are added to those of the main one.
struct ConvSample {
  double value = 0;  // after post-ops
  double magnitude =
      0;  // sum |in * w| + |bias| + |residual|; for `in` its own magnitude where it is computed
};
ConvSample ReferenceConvAt(const ConvWorkload& workload, const ConvTensors& tensors,
                           const Dims4& output_index);
ConvSample ReferenceConvAt(const ConvWorkload& workload, const Tensor& input, const Tensor& weights,
                           const Tensor* bias, const Tensor* residual, const Dims4& output_index);

// Conv: constant weights and bias.
std::vector<OpImporter> ConvImporters();

}  // namespace tilesmith
