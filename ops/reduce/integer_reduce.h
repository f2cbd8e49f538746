// Reductions of what is no float: shape arithmetic, masks, indices. Plain, through the reference.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

enum class IntegerReduceKind { kSum, kMean, kMax, kMin, kProduct, kL1, kSumSquare };

// Over `axes` (ascending), the others staying; sums and products wrap around, a mean is cut off toward zero.
// Reducing nothing is possible for sums and products only. A bool's maximum is whether any is true.
class IntegerReduceOp : public Op {
 public:
  IntegerReduceOp(IntegerReduceKind kind, std::vector<int64_t> axes, bool keep_dims)
      : kind_(kind), axes_(std::move(axes)), keep_dims_(keep_dims) {}
  std::string_view Type() const override;  // "ReduceMax", ...
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override { return inputs[0]; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  IntegerReduceKind kind_;
  std::vector<int64_t> axes_;
  bool keep_dims_;
};

// A Reduce* node whose input has another type than f32. Refuses those that are defined for floats only.
BuiltOp BuildIntegerReduce(const NodeSpec& spec, std::vector<int64_t> axes, bool keep_dims);

}  // namespace tilesmith
