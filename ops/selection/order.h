// Elements in the order of their size along an axis. Plain, through the reference. Among equals the first
// comes first; a NaN is larger than every number.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

// The k largest or smallest along an axis, in order. Output 0 are the values, output 1 their indices.
class TopKOp : public Op {
 public:
  TopKOp(int64_t k, int64_t axis, bool largest, int output)
      : k_(k), axis_(axis), largest_(largest), output_(output) {}
  std::string_view Type() const override { return "TopK"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  double Flops(std::span<const Shape> inputs) const override;

 private:
  int64_t k_, axis_;
  bool largest_;
  int output_;
};

// The index of the largest or smallest along an axis: the first of them, or the last.
class ArgOp : public Op {
 public:
  ArgOp(bool largest, int64_t axis, bool keep_dims, bool last)
      : largest_(largest), axis_(axis), keep_dims_(keep_dims), last_(last) {}
  std::string_view Type() const override { return largest_ ? "ArgMax" : "ArgMin"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType>) const override { return DataType::kI64; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  bool largest_;
  int64_t axis_;
  bool keep_dims_, last_;
};

// TopK, ArgMax, ArgMin, and Hardmax by them.
std::vector<OpImporter> OrderImporters();

}  // namespace tilesmith
