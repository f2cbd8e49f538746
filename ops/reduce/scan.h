// Ops along one axis whose elements depend on those before. Plain, through the reference.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

// out[i] = sum of x[j] for j <= i, or j < i (exclusive); from the end in reverse. Integers wrap around.
class CumSumOp : public Op {
 public:
  CumSumOp(int64_t axis, bool exclusive, bool reverse)
      : axis_(axis), exclusive_(exclusive), reverse_(reverse) {}
  std::string_view Type() const override { return "CumSum"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override { return inputs[0]; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  int64_t axis_;
  bool exclusive_, reverse_;
};

// The first lengths[b] elements of each sequence backwards, the rest as it is. The input has the axes time
// and batch, in either order, first.
class ReverseSequenceOp : public Op {
 public:
  explicit ReverseSequenceOp(bool batch_first) : batch_first_(batch_first) {}
  std::string_view Type() const override { return "ReverseSequence"; }
  std::string Signature() const override {
    return batch_first_ ? "ReverseSequence batch first" : "ReverseSequence";
  }
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override { return inputs[0]; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  bool batch_first_;
};

// CumSum, ReverseSequence.
std::vector<OpImporter> ScanImporters();

}  // namespace tilesmith
