#include "ops/base/broadcast.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/error.h"

namespace tilesmith {

std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t from_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t from_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) return std::nullopt;
    result[result.size() - 1 - i] = from_a == 1 ? from_b : from_a;
  }
  return result;
}

Shape BroadcastAll(std::string_view type, std::span<const Shape> shapes) {
  Shape all = shapes[0];
  for (const Shape& shape : shapes.subspan(1)) {
    const std::optional<Shape> wider = BroadcastShapes(all, shape);
    if (!wider) {
      throw Error(ErrorCode::kBadModel, fmt::format("{} of {} and {}: the shapes do not broadcast", type,
                                                    ShapeToString(all), ShapeToString(shape)));
    }
    all = *wider;
  }
  return all;
}

std::vector<int64_t> BroadcastIndices(const Shape& from, const Shape& to) {
  std::vector<int64_t> strides(to.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t axis = from.size() - 1 - i;
    if (from[axis] != 1) strides[to.size() - 1 - i] = stride;
    stride *= from[axis];
  }
  std::vector<int64_t> indices(ElementCount(to));
  for (size_t i = 0; i < indices.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i);
    for (size_t axis = to.size(); axis-- > 0; rest /= to[axis]) indices[i] += rest % to[axis] * strides[axis];
  }
  return indices;
}

}  // namespace tilesmith
