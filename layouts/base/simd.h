// Vectors of floats for *_isa.cc files. Only those include this: everything lives in the namespace of the
// instruction set being compiled, without linkage (isa_dispatch.h says why).
#pragma once

#include <cstdint>

namespace tilesmith::TILESMITH_ISA {
namespace {

// Floats in the widest vector. Vector types rather than plain arrays: accumulators then stay in registers.
#if defined(TILESMITH_ISA_avx512)
constexpr int kWidth = 16;
#elif defined(TILESMITH_ISA_avx2)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif

template <int kLanes>
struct VectorOf {
  typedef float Type __attribute__((vector_size(kLanes * sizeof(float))));
  typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));
  typedef float Unaligned
      __attribute__((vector_size(kLanes * sizeof(float)), aligned(sizeof(float)), may_alias));
};
template <>
struct VectorOf<1> {
  using Type = float;
  using Ints = int32_t;
  using Unaligned = float;
};
template <int kLanes>
using Vector = typename VectorOf<kLanes>::Type;

template <int kLanes>
inline Vector<kLanes> Load(const float* from) {
  return *reinterpret_cast<const typename VectorOf<kLanes>::Unaligned*>(from);
}
template <int kLanes>
inline void Store(float* to, Vector<kLanes> value) {
  *reinterpret_cast<typename VectorOf<kLanes>::Unaligned*>(to) = value;
}
template <int kLanes>
inline Vector<kLanes> Splat(float value) {
  return value - Vector<kLanes>{};  // minus zero leaves every value as it is, and costs nothing
}
// a * b + c.
template <typename V>
inline V MultiplyAdd(V a, V b, V c) {
  return a * b + c;
}
// As std::max and std::min: a NaN in `a` stays.
template <typename V>
inline V Max(V a, V b) {
  return a < b ? b : a;
}
template <typename V>
inline V Min(V a, V b) {
  return b < a ? b : a;
}

}  // namespace
}  // namespace tilesmith::TILESMITH_ISA
