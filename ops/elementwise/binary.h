// Elementwise arithmetic on two inputs, or for Min and Max on more, with numpy broadcasting, on floats or
// integers.
//
//   out = a + b, a - b, a * b, a / b, a ^ b, min(a, b), max(a, b), a >= 0 ? a : a * b
//
// Any shapes in plain layout, and in any layout where no input lacks dimensions that the output has, but for
// sizes of 1. A float input with a constant scalar or per-channel operand imports as a ScaleShiftOp.
#pragma once

#include "ops/base/op.h"
#include "ops/elementwise/kinds.h"

namespace tilesmith {

class BinaryOp : public Op {
 public:
  explicit BinaryOp(BinaryKind kind) : kind_(kind) {}
  BinaryKind kind() const { return kind_; }

  std::string_view Type() const override;  // "Add", "Sub", ...
  std::string Signature() const override { return std::string(Type()); }
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override;
  bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const override;
  bool AnyTypeInAnyLayout() const override { return true; }
  bool KernelTakes(std::span<const DataType> inputs) const override { return AreFloatsOrBf16(inputs); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  // The executor must check that the input has the output's shape.
  bool InPlaceOk(int) const override { return true; }
  auto Parameters() const { return std::tie(kind_); }

 private:
  BinaryKind kind_;
};

// out = sum of three or more float inputs, with broadcasting; fast in any layout when the shapes are equal.
class SumOp : public Op {
 public:
  std::string_view Type() const override { return "Sum"; }
  std::string Signature() const override { return "Sum"; }
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
  auto Parameters() const { return std::tie(); }
};

}  // namespace tilesmith
