// Mean, sum, largest, smallest, product, norms and their like over some axes, plain layout. Mean and largest
// over the last two of rank 4 import as a GlobalPoolOp instead.
#pragma once

#include "ops/base/op.h"

namespace tilesmith {

enum class ReduceKind {
  kMean,
  kSum,
  kMax,
  kMin,
  kProduct,
  kL1,         // the sum of |x|
  kL2,         // the square root of the sum of x^2
  kSumSquare,  // the sum of x^2
  kLogSum,     // log of the sum
  kLogSumExp,  // log of the sum of e^x, which does not overflow before the result does
};

class ReduceOp : public Op {
 public:
  // axes: ascending, non-negative.
  ReduceOp(ReduceKind kind, std::vector<int64_t> axes, bool keep_dims)
      : kind_(kind), axes_(std::move(axes)), keep_dims_(keep_dims) {}
  ReduceKind kind() const { return kind_; }
  const std::vector<int64_t>& axes() const { return axes_; }
  bool keep_dims() const { return keep_dims_; }

  std::string_view Type() const override;  // "ReduceMean", ...
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override;
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  auto Parameters() const { return std::tie(kind_, axes_, keep_dims_); }

 private:
  ReduceKind kind_;
  std::vector<int64_t> axes_;
  bool keep_dims_;
};

}  // namespace tilesmith
