// numpy's broadcasting: shapes are aligned at their last dimensions, and a dimension of size 1 repeats.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "layouts/layout.h"

namespace tilesmith {

// numpy's broadcast of two shapes; nullopt when they do not fit.
std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b);
// The broadcast of all shapes; throws Error(kBadModel) naming the op's type and the two that do not fit.
// Precondition: at least one.
Shape BroadcastAll(std::string_view type, std::span<const Shape> shapes);
// For each element of `to` in order, the index of the element of `from` it reads. Precondition: it
// broadcasts.
std::vector<int64_t> BroadcastIndices(const Shape& from, const Shape& to);

// Rows along the last axis of `to`, in order: row(at, starts, steps, count), where element i of the row is
// number at + i of `to`, and reads number starts[k] + i * steps[k] of tensor k, whose shape is from[k].
// Preconditions: all broadcast to `to`.
template <size_t kCount, typename Row>
void ForEachBroadcastRow(const std::array<Shape, kCount>& from, const Shape& to, const Row& row) {
  const size_t rank = to.size(), outer = rank == 0 ? 0 : rank - 1;
  std::array<std::vector<int64_t>, kCount> strides;
  for (size_t k = 0; k < kCount; ++k) {
    strides[k].assign(rank, 0);
    int64_t stride = 1;
    for (size_t i = 0; i < from[k].size(); ++i) {
      const int64_t size = from[k][from[k].size() - 1 - i];
      if (size != 1) strides[k][rank - 1 - i] = stride;
      stride *= size;
    }
  }
  const int64_t count = rank == 0 ? 1 : to.back(), total = ElementCount(to);
  std::array<int64_t, kCount> starts{}, steps{};
  for (size_t k = 0; k < kCount && rank > 0; ++k) steps[k] = strides[k].back();
  std::vector<int64_t> index(outer, 0);
  for (int64_t at = 0; at < total; at += count) {
    row(at, starts, steps, count);
    for (size_t axis = outer; axis-- > 0;) {
      const bool wraps = ++index[axis] == to[axis];
      for (size_t k = 0; k < kCount; ++k) starts[k] += strides[k][axis] * (wraps ? 1 - to[axis] : 1);
      if (!wraps) break;
      index[axis] = 0;
    }
  }
}

}  // namespace tilesmith
