// out[i_perm[0], i_perm[1], ...] = in[i_0, i_1, ...]: output axis a is input axis perm[a]. Plain layout.
//
// Models exported from channels-last frameworks, and detectors before they flatten their maps, move the
// channels of [N, C, H, W] to the end or back. Such a Transpose moves nothing: in NHWC the tensor lies in
// memory as [N, H, W, C] does in plain order.
#pragma once

#include "ops/base/op.h"

namespace tilesmith {

class TransposeOp : public Op {
 public:
  explicit TransposeOp(std::vector<int64_t> perm) : perm_(std::move(perm)) {}
  const std::vector<int64_t>& perm() const { return perm_; }

  std::string_view Type() const override { return "Transpose"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override { return SharedType(inputs); }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType>) const override { return true; }
  bool HasFastKernel() const override { return true; }
  bool IsView() const override { return LayoutsOfView() != ViewLayouts(); }
  ViewLayouts LayoutsOfView() const override;
  auto Parameters() const { return std::tie(perm_); }

 private:
  std::vector<int64_t> perm_;
};

}  // namespace tilesmith
