#include "ops/dense/arrangement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "layouts/base/error.h"
#include "ops/base/elements.h"

namespace tilesmith {
namespace {

[[noreturn]] void Fail(const Arrangement& arrangement, const Shape& tensor) {
  throw Error(ErrorCode::kBadModel,
              fmt::format("{} cannot be seen as {}", ShapeToString(tensor), arrangement.ToString()));
}

bool IsPermutation(const std::vector<int64_t>& perm, size_t rank) {
  std::vector<int64_t> sorted = perm, axes(rank);
  std::ranges::sort(sorted);
  std::iota(axes.begin(), axes.end(), 0);
  return sorted == axes;
}

// Calls body(index in the tensor) for every element that is seen, in order.
template <typename Body>
void ForEachSeen(const Shape& seen, const std::vector<int64_t>& strides, const Body& body) {
  const int64_t count = ElementCount(seen);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0, rest = i;
    for (size_t axis = seen.size(); axis-- > 0; rest /= seen[axis]) at += rest % seen[axis] * strides[axis];
    body(i, at);
  }
}

}  // namespace

Shape Arrangement::Seen(const Shape& tensor) const {
  const Shape& shape = view.empty() ? tensor : view;
  const bool images_stay = tensor.empty() || tensor[0] <= 1 || (!shape.empty() && shape[0] == tensor[0]);
  if (ElementCount(shape) != ElementCount(tensor) || !images_stay) Fail(*this, tensor);
  if (perm.empty()) return shape;
  if (!IsPermutation(perm, shape.size())) Fail(*this, tensor);
  Shape seen(shape.size());
  for (size_t axis = 0; axis < seen.size(); ++axis) seen[axis] = shape[perm[axis]];
  return seen;
}

std::string Arrangement::ToString() const {
  return (view.empty() ? "" : ShapeToString(view)) +
         (perm.empty() ? "" : fmt::format("@{}", fmt::join(perm, ",")));
}

Written WrittenAs(const Shape& seen, const std::vector<int64_t>& perm, const Shape& tensor) {
  Written written{tensor, {seen, perm}};
  if (!perm.empty()) {
    if (!IsPermutation(perm, seen.size())) Fail(written.arrangement, seen);
    for (size_t axis = 0; axis < seen.size(); ++axis) written.arrangement.view[perm[axis]] = seen[axis];
  }
  if (tensor.empty()) written.tensor = written.arrangement.view;
  written.arrangement.Seen(written.tensor);
  return written;
}

SeenStrides StridesOf(const Arrangement& arrangement, const Shape& tensor) {
  const Shape& view = arrangement.view.empty() ? tensor : arrangement.view;
  const std::vector<int64_t> dense = DenseStrides(view);
  SeenStrides seen;
  for (size_t axis = 0; axis < view.size(); ++axis) {
    const int64_t of_view = arrangement.perm.empty() ? static_cast<int64_t>(axis) : arrangement.perm[axis];
    seen.strides.push_back(dense[of_view]);
    if (of_view == 0 && !tensor.empty() && tensor[0] > 1) seen.image = static_cast<int>(axis);
  }
  return seen;
}

Tensor Arranged(const Arrangement& arrangement, const Tensor& tensor) {
  Tensor result(arrangement.Seen(tensor.shape()));
  ForEachSeen(result.shape(), StridesOf(arrangement, tensor.shape()).strides,
              [&](int64_t i, int64_t at) { result.floats()[i] = tensor.floats()[at]; });
  return result;
}

Tensor ArrangedBack(const Written& written, const Tensor& seen) {
  Tensor result(written.tensor);
  ForEachSeen(seen.shape(), StridesOf(written.arrangement, written.tensor).strides,
              [&](int64_t i, int64_t at) { result.floats()[at] = seen.floats()[i]; });
  return result;
}

}  // namespace tilesmith
