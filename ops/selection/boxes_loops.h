// The inner loop of NonMaxSuppression, built for each instruction set (boxes_isa.cc).
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

struct CornerBox {
  float top = 0, left = 0, bottom = 0, right = 0, area = 0;
};

// Boxes as columns, in whole blocks: what is behind the last one has no area.
inline constexpr int64_t kBoxBlock = 16;
struct BoxColumns {
  const float *top = nullptr, *left = nullptr, *bottom = nullptr, *right = nullptr, *areas = nullptr;
  int64_t blocks = 0;
};

// Whether the intersection of `box` with one of them is more than `threshold` of their union. Boxes without
// an area and those with a NaN have none with any.
TILESMITH_DECLARE_ISA(bool OverlapsAny(const BoxColumns& boxes, const CornerBox& box, float threshold))

}  // namespace tilesmith
