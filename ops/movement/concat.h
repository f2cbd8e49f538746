// Concatenation along one axis. Along channels (axis 1 of rank 2 to 4) in any layout; otherwise plain.
#pragma once

#include "ops/base/op.h"

namespace tilesmith {

class ConcatOp : public Op {
 public:
  explicit ConcatOp(int64_t axis) : axis_(axis) {}  // axis >= 0
  int64_t axis() const { return axis_; }

  std::string_view Type() const override { return "Concat"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override { return SharedType(inputs); }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const override;
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType>) const override { return true; }
  bool AnyTypeInAnyLayout() const override { return true; }
  bool HasFastKernel() const override { return true; }
  std::optional<RowWindows> RowsReadOf(size_t slot, std::span<const Shape> inputs,
                                       const Shape& output) const override;
  auto Parameters() const { return std::tie(axis_); }

 private:
  int64_t axis_;
};

}  // namespace tilesmith
