// Mean over some axes, plain layout. Over the last two of rank 4 it imports as a GlobalPoolOp instead.
#pragma once

#include "ops/op_registry.h"

namespace tilesmith {

class ReduceMeanOp : public Op {
 public:
  // axes: ascending, non-negative.
  ReduceMeanOp(std::vector<int64_t> axes, bool keep_dims) : axes_(std::move(axes)), keep_dims_(keep_dims) {}

  std::string_view Type() const override { return "ReduceMean"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  std::vector<int64_t> axes_;
  bool keep_dims_;
};

std::vector<OpImporter> ReduceMeanImporters();

}  // namespace tilesmith
