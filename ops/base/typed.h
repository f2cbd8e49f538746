#pragma once
#include "layouts/tensor.h"
namespace tilesmith {
using BoolElement = int64_t;
constexpr DataType kBoolType = DataType::kI64;
template <typename T>
struct TypeTag {
  using Type = T;
};
template <typename V>
decltype(auto) VisitType(DataType t, const V& v) {
  if (t == DataType::kF32) return v(TypeTag<float>());
  return v(TypeTag<int64_t>());
}
inline bool IsFloating(DataType t) { return t == DataType::kF32; }
inline Tensor NewTensor(Shape s, DataType t) { return Tensor(std::move(s), Layout::Nchw(), t); }
template <typename T>
const T* Data(const Tensor& t) {
  if constexpr (std::is_same_v<T, float>)
    return t.floats();
  else
    return t.ints();
}
template <typename T>
T* Data(Tensor& t) {
  if constexpr (std::is_same_v<T, float>)
    return t.floats();
  else
    return t.ints();
}
}  // namespace tilesmith
