// Samples of an image at computed places, plain.
#pragma once

#include "ops/base/op.h"
#include "ops/sampling/grid_sample_loops.h"

namespace tilesmith {

// out[n, c, p] = in[n, c] at the place grid[n, p], which lists the coordinates from the last axis to the
// first, -1 and 1 being the ends of the axis: the centers of its outer elements (align_corners) or their
// outer edges. Inputs: {N, C, D1, ..., Dr} and {N, P1, ..., Pr, r}, r 1, 2 or 3; cubic for r = 2 only, by
// Keys' kernel with a = -0.75. Linear samples of images of two axes have a kernel, others the reference.
class GridSampleOp : public Op {
 public:
  GridSampleOp(SampleMode mode, SamplePadding padding, bool align_corners)
      : mode_(mode), padding_(padding), align_corners_(align_corners) {}
  std::string_view Type() const override { return "GridSample"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override;
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return mode_ == SampleMode::kLinear; }
  auto Parameters() const { return std::tie(mode_, padding_, align_corners_); }

 private:
  SampleMode mode_;
  SamplePadding padding_;
  bool align_corners_;
};

}  // namespace tilesmith
