// Max pooling that also says where the largest elements are, or that is not of floats, and its inverse. Over
// any number of axes; plain, through the reference.
#pragma once

#include "ops/base/import_util.h"

namespace tilesmith {

struct IndexedPool {
  std::vector<AxisWindow> windows;
  bool ceil_mode = false;
  bool column_major = false;  // how indices count the axes behind the second
};

// Output 0: out[n, c, p] = the largest element of window p. Output 1: its index in the whole input, the first
// of several. A NaN is passed over; a window of nothing but padding gives the smallest value there is, and 0.
class IndexedMaxPoolOp : public Op {
 public:
  IndexedMaxPoolOp(IndexedPool pool, int output) : pool_(std::move(pool)), output_(output) {}
  std::string_view Type() const override { return "MaxPool"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override {
    return output_ == 0 ? inputs[0] : DataType::kI64;
  }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override;
  auto Parameters() const { return std::tie(pool_, output_); }

 private:
  IndexedPool pool_;
  int output_;
};

// out is 0 but out[indices[i]] = x[i], counted through a tensor of the shape `pooled`, which lies at the
// start of every axis of the output.
class MaxUnpoolOp : public Op {
 public:
  // Precondition: the same rank, and no size of `pooled` above the output's.
  MaxUnpoolOp(Shape pooled, Shape output) : pooled_(std::move(pooled)), output_(std::move(output)) {}
  std::string_view Type() const override { return "MaxUnpool"; }
  std::string Signature() const override {
    return "MaxUnpool " + ShapeToString(pooled_) + " in " + ShapeToString(output_);
  }
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  auto Parameters() const { return std::tie(pooled_, output_); }

 private:
  Shape pooled_, output_;
};

// A MaxPool with indices or of integers.
BuiltOp BuildIndexedMaxPool(const NodeSpec& spec);
// MaxPool, AveragePool and their global forms where the input is not of rank 4. Windows over three axes are
// windows over two of them and then over the third.
BuiltOp BuildPoolOfOtherRank(const NodeSpec& spec);
BuiltOp BuildGlobalPoolOfOtherRank(const NodeSpec& spec, const std::string& reduction);

}  // namespace tilesmith
