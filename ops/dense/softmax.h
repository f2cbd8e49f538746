// out = exp(in - max) / sum exp(in - max), or its logarithm, over axes first_axis..last_axis together (one
// axis from opset 13 on, all from `axis` to the end before). Plain layout.
#pragma once

#include "ops/base/op.h"

namespace tilesmith {

class SoftmaxOp : public Op {
 public:
  // 0 <= first_axis <= last_axis < rank
  SoftmaxOp(int64_t first_axis, int64_t last_axis, bool logarithm = false)
      : first_axis_(first_axis), last_axis_(last_axis), logarithm_(logarithm) {}
  int64_t first_axis() const { return first_axis_; }
  int64_t last_axis() const { return last_axis_; }
  bool logarithm() const { return logarithm_; }

  std::string_view Type() const override { return logarithm_ ? "LogSoftmax" : "Softmax"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override;
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  bool InPlaceOk(int) const override { return true; }
  auto Parameters() const { return std::tie(first_axis_, last_axis_, logarithm_); }

 private:
  int64_t first_axis_, last_axis_;
  bool logarithm_;
};

}  // namespace tilesmith
