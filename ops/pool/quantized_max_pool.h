// Max pooling of bytes, in any layout: PoolOp's formula (ops/pool/pool.h), whose scale and zero point do not
// matter. A window wholly outside the input gives the type's lowest number. MaxPool of bytes imports as one,
// and a pass makes it of MaxPool between DequantizeLinear and QuantizeLinear.
#pragma once

#include "ops/pool/pool.h"

namespace tilesmith {

class QuantizedMaxPoolOp : public Op {
 public:
  // Precondition: window.kind is kMax.
  explicit QuantizedMaxPoolOp(const PoolWindow& window);
  const PoolWindow& window() const { return pool_.window(); }

  std::string_view Type() const override { return "QuantizedMaxPool"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override { return pool_.InferShape(inputs); }
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  double Flops(std::span<const Shape> inputs) const override { return pool_.Flops(inputs); }
  bool RunsIn(const Layout&, std::span<const Shape>) const override { return true; }
  bool AnyTypeInAnyLayout() const override { return true; }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType> inputs) const override;
  bool HasFastKernel() const override { return true; }

 private:
  const PoolOp pool_;
};

}  // namespace tilesmith
