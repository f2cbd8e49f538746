// numpy's broadcasting: shapes are aligned at their last dimensions, and a dimension of size 1 repeats.
#pragma once

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

}  // namespace tilesmith
