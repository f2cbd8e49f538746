// Transposed convolution: what a conv's backward pass computes, used to enlarge images.
//
//   out[n, g*OC + o, y, x] = act( bias[g*OC + o] + sum over c, and over u, v, i, j with
//                                 y + top = u*sh + i*dh and x + left = v*sw + j*dw,
//                                 of in[n, g*IC + c, u, v] * weights[g*IC + c, o, i, j] )
//
// IC and OC are the channels of one group. Only the meaning: networks run it as a conv and a DepthToSpace
// (LowerConvTranspose, passes.h), which it becomes unless it is dilated.
#pragma once

#include "ops/base/activation.h"
#include "ops/base/op.h"

namespace tilesmith {

struct ConvTransposeParams {
  Shape input;  // {N, C, H, W}
  int64_t groups = 1;
  int64_t sh = 1, sw = 1;
  int64_t dh = 1, dw = 1;  // distance between taps, 1 is dense (as ONNX counts)
  int64_t top = 0, left = 0;
  int64_t oh = 0, ow = 0;
};

class ConvTransposeOp : public Op {
 public:
  // weights: {C, OC, kh, kw}; bias: groups * OC floats, or null.
  ConvTransposeOp(const ConvTransposeParams& params, std::shared_ptr<const Tensor> weights,
                  std::shared_ptr<const Tensor> bias, Activation activation = {});

  const ConvTransposeParams& params() const { return params_; }
  const std::shared_ptr<const Tensor>& weights() const { return weights_; }
  const std::shared_ptr<const Tensor>& bias() const { return bias_; }
  const Activation& activation() const { return activation_; }
  int64_t output_channels() const { return params_.groups * weights_->shape()[1]; }

  std::string_view Type() const override { return "ConvTranspose"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override;
  OpPtr WithActivation(const Activation& activation) const override;
  OpPtr WithScaleShift(const ScaleShiftOp& op, const Shape& output) const override;
  auto Parameters() const { return std::tie(params_, weights_, bias_, activation_); }

 private:
  ConvTransposeParams params_;
  std::shared_ptr<const Tensor> weights_, bias_;
  Activation activation_;
};

}  // namespace tilesmith
