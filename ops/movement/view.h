// The same elements in the same (plain) order under another shape.
#pragma once

#include "ops/base/op.h"

namespace tilesmith {

class ViewOp : public Op {
 public:
  // Reshape to `target`, in which 0 copies the input's size at that place (not so of Squeeze and Unsqueeze)
  // and one -1 takes what is left. `type` is ONNX's name: Reshape, Flatten, Squeeze, Unsqueeze, Identity or
  // Dropout.
  // identity: of the same shape, whatever `target` is: Identity, Dropout.
  ViewOp(std::string type, Shape target, bool identity = false)
      : type_(std::move(type)), target_(std::move(target)), identity_(identity) {}
  explicit ViewOp(std::string type) : ViewOp(std::move(type), {}, true) {}
  bool is_identity() const { return identity_; }

  std::string_view Type() const override { return type_; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override { return SharedType(inputs); }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;  // copies
  bool KernelTakes(std::span<const DataType>) const override { return true; }
  bool HasFastKernel() const override { return true; }
  bool IsView() const override { return true; }
  auto Parameters() const { return std::tie(type_, target_, identity_); }

 private:
  std::string type_;
  Shape target_;
  bool identity_;
};

}  // namespace tilesmith
