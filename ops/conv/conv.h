// Convolution with fused post-ops.
//
//   out[n, o, y, x] = act( bias[o] + residual[n, o, y, x]
//                          + sum_{c, i, j} in[n, g(o) * ic/g + c, y*sh - ph + i*(dh+1), x*sw - pw + j*(dw+1)]
//                                          * weights[o, c, i, j] )
// Inputs: data NCHW, then the residual when workload.post.sum. Out-of-range taps read zero.
#pragma once

#include <functional>
#include <optional>

#include "ops/base/op.h"
#include "ops/base/op_registry.h"
#include "ops/conv/workload.h"

namespace tilesmith {

// Kernels that copy their input in front of the products copy what at least so many outputs of a row see.
constexpr int64_t kLeastSeenOutputs = 24;

// Bytes of that, at most, where a pixel has so many numbers of 16 bits; in floating point, where it cannot
// overflow.
inline double LeastSeenBytes(const ConvWorkload& w, int64_t pixel_numbers) {
  const double rows = static_cast<double>(w.kh - 1) * static_cast<double>(w.dh + 1) + 1;
  const double columns = static_cast<double>(w.kw - 1) * static_cast<double>(w.dw + 1) + 1 +
                         static_cast<double>(w.kw == 1 ? 1 : w.sw) * kLeastSeenOutputs;
  return rows * columns * static_cast<double>(pixel_numbers) * sizeof(int16_t);
}

class ConvolutionOp : public Op {
 public:
  const ConvWorkload& workload() const { return workload_; }

 protected:
  explicit ConvolutionOp(ConvWorkload workload) : workload_(std::move(workload)) {}

  ConvWorkload workload_;
};

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
  Tensor RoundingBound(const OpRun& run) const override;
  double Flops(std::span<const Shape> inputs) const override;
  OpPtr WithActivation(const Activation& activation) const override;
  OpPtr WithResidual() const override;
  OpPtr WithScaleShift(const ScaleShiftOp& op, const Shape& output) const override;

  // At least the sum of the absolute values of each output's terms, the input's elements having these
  // magnitudes: the sum is bounded by the product of two norms, those of the weights and of the inputs they
  // meet (Cauchy and Schwarz), which is some 1.5 to 3 times as much and next to nothing to compute.
  Tensor Magnitudes(const Tensor& input, const Tensor* residual) const;
  // How many terms an output sums up, bias and residual included.
  double Terms() const;

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

struct ConvData {
  Tensor input, weights;
  std::optional<Tensor> bias, residual, scale, shift, before_weights, before_bias;

  // Valid while this lives where it is.
  ConvTensors tensors() const;
};

// Plain tensors of the workload's shapes, filled in the order of the members.
ConvData MakeConvData(const ConvWorkload& workload, const std::function<void(Tensor&)>& fill);

}  // namespace tilesmith
