// What exporters emit around Reshape, and Cast. Shapes are static here, so Shape, Size, Constant,
// ConstantOfShape and Range import as ConstantOps.
#pragma once

#include "ops/base/op.h"

namespace tilesmith {

// Elements in another type, by ConvertElement (data_type.h). Inputs of any type. The kernel is the layout
// transform that converts (transform.h), where there is one.
class CastOp : public Op {
 public:
  explicit CastOp(DataType to) : to_(to) {}
  std::string_view Type() const override { return "Cast"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType>) const override { return to_; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType> inputs) const override;
  bool HasFastKernel() const override { return true; }
  auto Parameters() const { return std::tie(to_); }

 private:
  DataType to_;
};

}  // namespace tilesmith
