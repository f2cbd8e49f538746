// The members of plain structs as tuples, so that what writes, reads or compares structs need not name them.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tilesmith {

namespace fields_internal {

struct Anything {
  template <typename T>
  operator T() const;  // NOLINT: never called, and as implicit as can be
};

template <typename T, size_t... kMembers>
constexpr bool TakesMembers(std::index_sequence<kMembers...>) {
  return requires { T{(static_cast<void>(kMembers), Anything())...}; };
}

constexpr size_t kMostFields = 24;

template <typename T, size_t kCount = kMostFields + 1>
constexpr size_t CountMembers() {
  if constexpr (TakesMembers<T>(std::make_index_sequence<kCount>())) {
    return kCount;
  } else {
    return CountMembers<T, kCount - 1>();
  }
}

}  // namespace fields_internal

// How many members an aggregate without bases has, none of them an array of C's.
template <typename T>
constexpr size_t kFieldCount = fields_internal::CountMembers<std::remove_cv_t<T>>();

// Structured bindings have as many names as a struct has members.
#define TILESMITH_FIELDS(count, ...) \
  if constexpr (kCount == (count)) { \
    auto& [__VA_ARGS__] = value;     \
    return std::tie(__VA_ARGS__);    \
  }

// References to them, in their order. Precondition: at most kMostFields.
template <typename T>
constexpr auto FieldsOf(T& value) {
  static_assert(std::is_aggregate_v<std::remove_cv_t<T>>);
  constexpr size_t kCount = kFieldCount<T>;
  static_assert(kCount <= fields_internal::kMostFields, "FieldsOf needs another case");
  if constexpr (kCount == 0) return std::tuple<>();
  // clang-format off
  TILESMITH_FIELDS(1, a)
  TILESMITH_FIELDS(2, a, b)
  TILESMITH_FIELDS(3, a, b, c)
  TILESMITH_FIELDS(4, a, b, c, d)
  TILESMITH_FIELDS(5, a, b, c, d, e)
  TILESMITH_FIELDS(6, a, b, c, d, e, f)
  TILESMITH_FIELDS(7, a, b, c, d, e, f, g)
  TILESMITH_FIELDS(8, a, b, c, d, e, f, g, h)
  TILESMITH_FIELDS(9, a, b, c, d, e, f, g, h, i)
  TILESMITH_FIELDS(10, a, b, c, d, e, f, g, h, i, j)
  TILESMITH_FIELDS(11, a, b, c, d, e, f, g, h, i, j, k)
  TILESMITH_FIELDS(12, a, b, c, d, e, f, g, h, i, j, k, l)
  TILESMITH_FIELDS(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  TILESMITH_FIELDS(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
  TILESMITH_FIELDS(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
  TILESMITH_FIELDS(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
  TILESMITH_FIELDS(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
  TILESMITH_FIELDS(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
  TILESMITH_FIELDS(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)
  TILESMITH_FIELDS(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
  TILESMITH_FIELDS(21, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u)
  TILESMITH_FIELDS(22, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v)
  TILESMITH_FIELDS(23, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w)
  TILESMITH_FIELDS(24, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)
  // clang-format on
}

#undef TILESMITH_FIELDS

}  // namespace tilesmith
