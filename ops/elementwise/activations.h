// Elementwise activations:  out = act(in), any shape, any layout for rank <= 4. Padding channels stay zero.
#pragma once

#include <vector>

#include "ops/base/activation.h"
#include "ops/base/op.h"

namespace tilesmith {

class ActivationOp : public Op {
 public:
  explicit ActivationOp(Activation activation) : activation_(activation) {}
  const Activation& activation() const { return activation_; }

  std::string_view Type() const override;  // ONNX's name: "Relu", "Clip", ...; "Silu"
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override;
  bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const override;
  bool AnyTypeInAnyLayout() const override { return true; }
  bool KernelTakes(std::span<const DataType> inputs) const override { return AreFloatsOrBf16(inputs); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  bool InPlaceOk(int) const override { return true; }
  std::optional<InputOps> AsInputOps() const override { return InputOps{false, activation_}; }
  auto Parameters() const { return std::tie(activation_); }

 private:
  Activation activation_;
};

// Leaky relu with one slope per channel:
//
//   out[n, c, ...] = in >= 0 ? in : slope[c] * in            any rank >= 2, any layout for rank <= 4

class PReluOp : public Op {
 public:
  explicit PReluOp(std::vector<float> slopes) : slopes_(std::move(slopes)) {}  // one per channel
  const std::vector<float>& slopes() const { return slopes_; }

  std::string_view Type() const override { return "PRelu"; }
  std::string Signature() const override { return "PRelu"; }
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const override;
  bool AnyTypeInAnyLayout() const override { return true; }
  bool KernelTakes(std::span<const DataType> inputs) const override { return AreFloatsOrBf16(inputs); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  bool InPlaceOk(int) const override { return true; }
  auto Parameters() const { return std::tie(slopes_); }

 private:
  std::vector<float> slopes_;
};

}  // namespace tilesmith
