// Elements picked and placed by tensors of indices. Plain, through the reference. Negative indices count from
// the end; an index outside its axis throws Error(kBadModel) when it is met.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

// out[i] = data[i, but indices[i] along the axis]
class GatherElementsOp : public Op {
 public:
  explicit GatherElementsOp(int64_t axis) : axis_(axis) {}
  std::string_view Type() const override { return "GatherElements"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override { return inputs[0]; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  int64_t axis_;
};

// out[b, i, :] = data[b, indices[b, i, 0], indices[b, i, 1], ..., :], where b are `batch_dims` axes.
class GatherNdOp : public Op {
 public:
  explicit GatherNdOp(int64_t batch_dims) : batch_dims_(batch_dims) {}
  std::string_view Type() const override { return "GatherND"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override { return inputs[0]; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  int64_t batch_dims_;
};

// What becomes of an element that an update meets.
enum class ScatterReduction { kReplace, kAdd, kMul, kMax, kMin };

// out = data, then out[i, but indices[i] along the axis] takes updates[i]
class ScatterElementsOp : public Op {
 public:
  ScatterElementsOp(int64_t axis, ScatterReduction reduction) : axis_(axis), reduction_(reduction) {}
  std::string_view Type() const override { return "ScatterElements"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  int64_t axis_;
  ScatterReduction reduction_;
};

// out = data, then out[indices[i, 0], indices[i, 1], ..., :] takes updates[i, :]
class ScatterNdOp : public Op {
 public:
  explicit ScatterNdOp(ScatterReduction reduction) : reduction_(reduction) {}
  std::string_view Type() const override { return "ScatterND"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  ScatterReduction reduction_;
};

// GatherElements, GatherND, ScatterElements (and Scatter, its old name), ScatterND.
std::vector<OpImporter> GatherScatterImporters();

}  // namespace tilesmith
