// Elementwise activations:  out = act(in), any shape, any layout for rank <= 4. Padding channels stay zero.
#pragma once

#include "ops/base/activation.h"
#include "ops/base/op_registry.h"

namespace tilesmith {

class ActivationOp : public Op {
 public:
  explicit ActivationOp(Activation activation) : activation_(activation) {}
  const Activation& activation() const { return activation_; }

  std::string_view Type() const override;  // ONNX's name: "Relu", "Clip", ...; "Silu"
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const override;
  bool AnyTypeInAnyLayout() const override { return true; }
  bool KernelTakes(std::span<const DataType> inputs) const override { return AreFloatsOrBf16(inputs); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  bool InPlaceOk(int) const override { return true; }

 private:
  Activation activation_;
};

// Relu, Clip, LeakyRelu, Sigmoid, HardSigmoid, HardSwish, Tanh. A Clip without bounds is the identity.
std::vector<OpImporter> ActivationImporters();

}  // namespace tilesmith
