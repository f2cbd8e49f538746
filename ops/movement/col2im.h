// Overlapping blocks put together into an image: what lies on one pixel is added up. Plain, through the
// reference.
#pragma once

#include "ops/base/window_axes.h"

namespace tilesmith {

// out[n, c, p] = sum of in[n, c * block + tap, window] over the windows whose tap lies on pixel p. Input:
// {N, C * elements of a block, windows}; output {N, C, sizes...}.
class Col2ImOp : public Op {
 public:
  Col2ImOp(Shape sizes, std::vector<AxisWindow> windows)
      : sizes_(std::move(sizes)), windows_(std::move(windows)) {}
  std::string_view Type() const override { return "Col2Im"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  Shape sizes_;
  std::vector<AxisWindow> windows_;
};

// Col2Im.
std::vector<OpImporter> Col2ImImporters();

}  // namespace tilesmith
