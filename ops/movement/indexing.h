// Picking and repeating elements of any type, in plain layout; Slice for rank <= 4 in any.
#pragma once

#include "ops/base/op.h"

namespace tilesmith {

// out = in with axis `axis` replaced by the indices' shape; negative indices count from the end. Inputs:
// data, indices.
class GatherOp : public Op {
 public:
  explicit GatherOp(int64_t axis) : axis_(axis) {}
  int64_t axis() const { return axis_; }
  std::string_view Type() const override { return "Gather"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType>) const override { return true; }
  bool HasFastKernel() const override { return true; }
  auto Parameters() const { return std::tie(axis_); }

 private:
  int64_t axis_;
};

// in[start : end : step] along each listed axis, clamped as numpy does.
struct SliceRange {
  int64_t axis = 0, start = 0, end = 0, step = 1;
};
// What that is along one axis of a known size: output position i is input position start + i * step.
struct SliceAxis {
  int64_t start = 0, step = 1, count = 0;
};
class SliceOp : public Op {
 public:
  explicit SliceOp(std::vector<SliceRange> ranges) : ranges_(std::move(ranges)) {}
  // One for each axis of the input. Throws Error(kBadModel) when it lacks an axis.
  std::vector<SliceAxis> Axes(const Shape& input) const;

  std::string_view Type() const override { return "Slice"; }
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
  auto Parameters() const { return std::tie(ranges_); }

 private:
  std::vector<SliceRange> ranges_;
};

// Broadcasts the input to the broadcast of its shape and `target`.
class ExpandOp : public Op {
 public:
  explicit ExpandOp(Shape target) : target_(std::move(target)) {}
  std::string_view Type() const override { return "Expand"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override { return SharedType(inputs); }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType>) const override { return true; }
  bool HasFastKernel() const override { return true; }
  auto Parameters() const { return std::tie(target_); }

 private:
  Shape target_;
};

}  // namespace tilesmith
