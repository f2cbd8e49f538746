// Regions of an image brought to one size: He et al., "Mask R-CNN" (2017). Plain.
#pragma once

#include "ops/base/op.h"

namespace tilesmith {

struct RoiAlignParams {
  bool max = false;         // of the samples of a bin, their mean otherwise
  bool half_pixel = false;  // pixels' centers are at halves
  int64_t height = 1, width = 1;
  int64_t samples = 0;  // of a bin along each axis; 0: as many as it has pixels, rounded up
  float scale = 1;      // from the regions' coordinates to the image's
};

// out[r, c, y, x] = mean or max of bilinear samples of image[batch_indices[r], c] in a bin of regions[r].
// Inputs: {N, C, H, W}, regions {R, 4} as x1, y1, x2, y2, and {R} integers.
class RoiAlignOp : public Op {
 public:
  explicit RoiAlignOp(const RoiAlignParams& params) : params_(params) {}
  std::string_view Type() const override { return "RoiAlign"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override;
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType> inputs) const override;
  bool HasFastKernel() const override { return true; }
  auto Parameters() const { return std::tie(params_); }

 private:
  RoiAlignParams params_;
};

}  // namespace tilesmith
