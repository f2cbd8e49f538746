// Elements of any type, moved without looking at them: what concat, gather, transpose and the like share.
#pragma once

#include <algorithm>
#include <vector>

#include "layouts/tensor.h"

namespace tilesmith {

// to[to_index .. + count) = from[from_index .. + count). Precondition: the same type.
inline void CopyElements(const Tensor& from, int64_t from_index, Tensor& to, int64_t to_index,
                         int64_t count) {
  const int64_t size = ElementBytes(from.type());
  std::copy_n(from.raw() + from_index * size, count * size, to.raw() + to_index * size);
}

// to[i] = from[source(i)] for every element of `to`.
template <typename Source>
void GatherElements(const Tensor& from, Tensor& to, const Source& source) {
  const int64_t count = to.size();
  for (int64_t i = 0; i < count; ++i) CopyElements(from, source(i), to, i, 1);
}

// The elements converted (ConvertElement), whatever type they have.
template <typename To>
std::vector<To> ElementsAs(const Tensor& tensor) {
  return VisitType(tensor.type(), [&](auto tag) {
    using From = typename decltype(tag)::Type;
    const From* const from = tensor.data<From>();
    std::vector<To> elements(tensor.size());
    std::transform(from, from + tensor.size(), elements.begin(),
                   [](From value) { return ConvertElement<To>(value); });
    return elements;
  });
}

// Elements between neighbours along each axis of a dense plain tensor.
inline std::vector<int64_t> DenseStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) strides[axis] = stride;
  return strides;
}

}  // namespace tilesmith
