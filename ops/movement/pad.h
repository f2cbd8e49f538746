// Padding in plain layout, any rank:  out[i] = in[i - begin], outside of it a constant, the mirrored or the
// nearest element. Negative pads crop.
#pragma once

#include "ops/base/op.h"

namespace tilesmith {

enum class PadMode { kConstant, kReflect, kEdge };

class PadOp : public Op {
 public:
  // One entry of begin and end for each axis.
  PadOp(PadMode mode, std::vector<int64_t> begin, std::vector<int64_t> end, float value = 0)
      : mode_(mode), begin_(std::move(begin)), end_(std::move(end)), value_(value) {}
  PadMode mode() const { return mode_; }
  const std::vector<int64_t>& begin() const { return begin_; }
  const std::vector<int64_t>& end() const { return end_; }
  float value() const { return value_; }

  std::string_view Type() const override { return "Pad"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override { return inputs[0]; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  auto Parameters() const { return std::tie(mode_, begin_, end_, value_); }

 private:
  PadMode mode_;
  std::vector<int64_t> begin_, end_;
  float value_;
};

// Where position `at` (from the input's first element) reads along an axis of `size`; -1 for the constant.
int64_t PadSource(PadMode mode, int64_t at, int64_t size);

}  // namespace tilesmith
