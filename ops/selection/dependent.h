// Ops whose output's size depends on values: they are computed where their inputs are known, at load time or
// in a network's tail (tail.h).
#pragma once

#include "ops/base/op.h"

namespace tilesmith {

// {rank, count}: the indices of the elements that are not 0, in order, a column for each.
Tensor NonZeroIndices(const Tensor& x);

struct NmsParams {
  bool center_point_box = false;  // boxes {x, y, width, height} around a center, not corners {y1, x1, y2, x2}
  int64_t max_boxes = 0;          // of each class of each image
  float iou_threshold = 0;        // a box that overlaps a better one by more is left out
  std::optional<float> score_threshold = {};  // only what is above it is looked at
};
// {count, 3}: image, class and box of each that is selected, by image, class and falling score. boxes:
// {images, n, 4}; scores: {images, classes, n}. Whatever `isa`, the result is the same.
Tensor NonMaxSuppression(const Tensor& boxes, const Tensor& scores, const NmsParams& params, Isa isa);

}  // namespace tilesmith
