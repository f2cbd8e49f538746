// Per-channel scale and shift, then an activation: what batch normalization is at inference time, and what
// Add or Mul with a per-channel constant are.
//
//   out[n, c, ...] = act(scale[c] * in[n, c, ...] + shift[c])         any rank >= 2, any layout for rank <= 4
#pragma once

#include <vector>

#include "ops/base/activation.h"
#include "ops/base/op.h"

namespace tilesmith {

class ScaleShiftOp : public Op {
 public:
  // Precondition: scale and shift have the same size, the number of channels.
  ScaleShiftOp(std::vector<float> scale, std::vector<float> shift, Activation activation = {});

  const std::vector<float>& scale() const { return scale_; }
  const std::vector<float>& shift() const { return shift_; }
  const Activation& activation() const { return activation_; }

  std::string_view Type() const override { return "ScaleShift"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override;
  double Flops(std::span<const Shape> inputs) const override;
  bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const override;
  bool AnyTypeInAnyLayout() const override { return true; }
  bool KernelTakes(std::span<const DataType> inputs) const override { return AreFloatsOrBf16(inputs); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  bool InPlaceOk(int) const override { return true; }
  std::optional<InputOps> AsInputOps() const override { return InputOps{true, activation_}; }
  OpPtr WithActivation(const Activation& activation) const override;
  // What a sum with this bias (null: none), and with these weights, of which every `inner` adjacent ones
  // belong to one channel, the channels repeating, becomes with scale and shift behind it.
  std::shared_ptr<const Tensor> ScaledBias(const Tensor* bias) const;
  std::shared_ptr<const Tensor> ScaledWeights(const std::shared_ptr<const Tensor>& weights,
                                              int64_t inner) const;
  // |scale * x| + |shift| of every element of the input.
  Tensor Magnitudes(const Tensor& input) const;
  auto Parameters() const { return std::tie(scale_, shift_, activation_); }

 private:
  std::vector<float> scale_, shift_;
  Activation activation_;
};

}  // namespace tilesmith
