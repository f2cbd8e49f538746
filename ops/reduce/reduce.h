// Mean, sum, largest, smallest or Euclidean norm over some axes, plain layout. Mean and largest over the last
// two of rank 4 import as a GlobalPoolOp instead.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

enum class ReduceKind { kMean, kSum, kMax, kMin, kL2 };

class ReduceOp : public Op {
 public:
  // axes: ascending, non-negative.
  ReduceOp(ReduceKind kind, std::vector<int64_t> axes, bool keep_dims)
      : kind_(kind), axes_(std::move(axes)), keep_dims_(keep_dims) {}

  std::string_view Type() const override;  // "ReduceMean", ...
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  ReduceKind kind_;
  std::vector<int64_t> axes_;
  bool keep_dims_;
};

// ReduceMean, ReduceSum, ReduceMax, ReduceMin, ReduceL2.
std::vector<OpImporter> ReduceImporters();

}  // namespace tilesmith
