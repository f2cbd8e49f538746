// Padding of tensors of any type.
#pragma once

#include <algorithm>

#include "ops/base/op.h"
#include "ops/kernels/block_kernel.h"

namespace tilesmith {

// Zeros where `count` elements from number `at` of an image on, which lie at `out`, hold no channel.
template <typename T>
void ZeroPadding(const BlockDims& dims, T* out, int64_t at, int64_t count) {
  if (!dims.has_padding()) return;
  const int64_t last = (dims.blocks - 1) * dims.block_floats();
  const int64_t used = dims.UsedLanes(dims.blocks - 1);
  const int64_t begin = std::max(at, last), end = at + count;
  for (int64_t pixel = (begin - last) / dims.lanes; last + pixel * dims.lanes < end; ++pixel) {
    const int64_t start = last + pixel * dims.lanes;
    const int64_t from = std::max(start + used, begin), to = std::min(start + dims.lanes, end);
    if (from < to) std::fill(out + (from - at), out + (to - at), T{});
  }
}

// Of a kernel that treats all bytes alike: whole images in plain layout, whose planes may be tiny.
inline BlockDims DimsOfBytes(const KernelRequest& request) {
  return request.layout.is_nchw() ? FlatDimsOf(request.output, request.layout)
                                  : BlockDimsOf(request.output, request.layout);
}

}  // namespace tilesmith
