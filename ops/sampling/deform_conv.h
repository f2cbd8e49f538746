// Deformable convolution: Dai et al., "Deformable Convolutional Networks" (2017), and version 2 with a mask.
// Plain, through the reference.
//
//   out[n, o, y, x] = bias[o] + sum over c, i, j of weights[o, c, i, j] * mask[n, g, i, j, y, x]
//                     * in[n, c] at (y*sh - top + i*dh + offset[n, g, i, j, 0, y, x],
//                                    x*sw - left + j*dw + offset[n, g, i, j, 1, y, x])
//
// between pixels bilinear, outside 0; g is the group of offsets that channel c belongs to.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

struct DeformConvParams {
  int64_t groups = 1, offset_groups = 1;
  int64_t kh = 1, kw = 1, sh = 1, sw = 1, dh = 1, dw = 1;
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  bool bias = false, mask = false;
};

// Inputs: data, weights {O, C / groups, kh, kw}, offsets, then bias and mask where there are any.
class DeformConvOp : public Op {
 public:
  explicit DeformConvOp(const DeformConvParams& params) : params_(params) {}
  std::string_view Type() const override { return "DeformConv"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  double Flops(std::span<const Shape> inputs) const override;

 private:
  DeformConvParams params_;
};

// DeformConv.
std::vector<OpImporter> DeformConvImporters();

}  // namespace tilesmith
