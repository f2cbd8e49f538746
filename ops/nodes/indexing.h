// Picking and repeating elements, in plain layout, on floats or integers. Slow: these exist for the shape
// arithmetic that constant folding evaluates.
#pragma once

#include "ops/op_registry.h"

namespace tilesmith {

// out = in with axis `axis` replaced by the indices' shape; negative indices count from the end. Inputs:
// data, indices.
class GatherOp : public Op {
 public:
  explicit GatherOp(int64_t axis) : axis_(axis) {}
  std::string_view Type() const override { return "Gather"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  int64_t axis_;
};

// in[start : end : step] along each listed axis, clamped as numpy does.
struct SliceRange {
  int64_t axis = 0, start = 0, end = 0, step = 1;
};
class SliceOp : public Op {
 public:
  explicit SliceOp(std::vector<SliceRange> ranges) : ranges_(std::move(ranges)) {}
  std::string_view Type() const override { return "Slice"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

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
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  Shape target_;
};

// Gather, Slice, Expand.
std::vector<OpImporter> IndexingImporters();

}  // namespace tilesmith
