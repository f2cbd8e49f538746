// out = exp(in - max) / sum exp(in - max) over axes first_axis..last_axis together (one axis from opset 13
// on, all from `axis` to the end before). Fast when the last axis is among them; plain layout.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

class SoftmaxOp : public Op {
 public:
  // 0 <= first_axis <= last_axis < rank
  SoftmaxOp(int64_t first_axis, int64_t last_axis) : first_axis_(first_axis), last_axis_(last_axis) {}
  int64_t first_axis() const { return first_axis_; }
  int64_t last_axis() const { return last_axis_; }

  std::string_view Type() const override { return "Softmax"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }

 private:
  int64_t first_axis_, last_axis_;
};

std::vector<OpImporter> SoftmaxImporters();

}  // namespace tilesmith
