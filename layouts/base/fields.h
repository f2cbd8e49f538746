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

// References to them, in their order. Precondition: at most kMostFields.
template <typename T>
constexpr auto FieldsOf(T& value) {
  static_assert(std::is_aggregate_v<std::remove_cv_t<T>>);
  constexpr size_t kCount = kFieldCount<T>;
  static_assert(kCount <= fields_internal::kMostFields, "FieldsOf needs another case");
  if constexpr (kCount == 0) {
    return std::tuple<>();
  } else if constexpr (kCount == 1) {
    auto& [m1] = value;
    return std::tie(m1);
  } else if constexpr (kCount == 2) {
    auto& [m1, m2] = value;
    return std::tie(m1, m2);
  } else if constexpr (kCount == 3) {
    auto& [m1, m2, m3] = value;
    return std::tie(m1, m2, m3);
  } else if constexpr (kCount == 4) {
    auto& [m1, m2, m3, m4] = value;
    return std::tie(m1, m2, m3, m4);
  } else if constexpr (kCount == 5) {
    auto& [m1, m2, m3, m4, m5] = value;
    return std::tie(m1, m2, m3, m4, m5);
  } else if constexpr (kCount == 6) {
    auto& [m1, m2, m3, m4, m5, m6] = value;
    return std::tie(m1, m2, m3, m4, m5, m6);
  } else if constexpr (kCount == 7) {
    auto& [m1, m2, m3, m4, m5, m6, m7] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7);
  } else if constexpr (kCount == 8) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8);
  } else if constexpr (kCount == 9) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9);
  } else if constexpr (kCount == 10) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10);
  } else if constexpr (kCount == 11) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11);
  } else if constexpr (kCount == 12) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12);
  } else if constexpr (kCount == 13) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13);
  } else if constexpr (kCount == 14) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14);
  } else if constexpr (kCount == 15) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15);
  } else if constexpr (kCount == 16) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16);
  } else if constexpr (kCount == 17) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17);
  } else if constexpr (kCount == 18) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18);
  } else if constexpr (kCount == 19) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19);
  } else if constexpr (kCount == 20) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                    m20);
  } else if constexpr (kCount == 21) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21] =
        value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                    m21);
  } else if constexpr (kCount == 22) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21,
           m22] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                    m21, m22);
  } else if constexpr (kCount == 23) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21,
           m22, m23] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                    m21, m22, m23);
  } else if constexpr (kCount == 24) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21,
           m22, m23, m24] = value;
    return std::tie(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                    m21, m22, m23, m24);
  }
}

}  // namespace tilesmith
