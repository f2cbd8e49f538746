// Per-channel scale and shift, then an activation: what batch normalization is at inference time, and what
// Add or Mul with a per-channel constant are.
//
//   out[n, c, ...] = act(scale[c] * in[n, c, ...] + shift[c])         any rank >= 2, any layout for rank <= 4
#pragma once

#include <vector>

#include "ops/base/activation.h"
#include "ops/base/op_registry.h"

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
  double Flops(std::span<const Shape> inputs) const override;
  bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const override;
  bool AnyTypeInAnyLayout() const override { return true; }
  bool KernelTakes(std::span<const DataType> inputs) const override { return AreFloatsOrBf16(inputs); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  bool InPlaceOk(int) const override { return true; }

 private:
  std::vector<float> scale_, shift_;
  Activation activation_;
};

// BatchNormalization.
std::vector<OpImporter> BatchNormImporters();

}  // namespace tilesmith
