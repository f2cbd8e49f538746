// Element types: their names, sizes and conversions.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tilesmith {

// The numbers are part of networks' hashes: they stay.
enum class DataType : uint8_t {
  kF32 = 0,
  kI64 = 1,
  kF16,   // IEEE 754 binary16
  kBf16,  // the upper half of a binary32
  kI8,
  kI16,
  kI32,
  kU8,
  kU16,
  kU32,
  kU64,
  kBool,  // one byte, 0 or 1
};
constexpr int kDataTypes = 12;

// The nearest number of 16 bits, ties to even; what is too large is infinite, subnormal numbers are kept, and
// a NaN stays a (quiet) NaN of its sign.
constexpr uint16_t F16Bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and more round to infinity
  if (magnitude < 0x38800000) {                       // subnormal: units of 2^-24
    if (magnitude <= 0x33000000) return sign;         // 2^-25, half a unit, goes to even
    const int shift = 126 - static_cast<int>(magnitude >> 23);
    const uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
    const uint32_t down = significand >> shift, rest = significand & ((1u << shift) - 1);
    const uint32_t half = 1u << (shift - 1);
    return static_cast<uint16_t>(sign | (down + (rest > half || (rest == half && (down & 1)))));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000;
  return static_cast<uint16_t>(sign | rounded >> 13);
}
constexpr float FromF16Bits(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0x1f) {
    return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000u : 0u));
  }
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}
constexpr uint16_t Bf16Bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
constexpr float FromBf16Bits(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// The float nearest to `value`, but where that is not exact the one beside `value` whose last bit is 1:
// rounding it once more to 16 bits then gives what rounding `value` would.
constexpr float RoundToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto bits = std::bit_cast<uint32_t>(nearest);
  if (static_cast<double>(nearest) == value || value != value || (bits & 1)) return nearest;
  const double error = value - static_cast<double>(nearest);
  const bool too_large = (error < 0) != (value < 0);
  return std::bit_cast<float>(too_large ? bits - 1 : bits + 1);
}

// Numbers of 16 bits as they are stored; arithmetic is done in float.
struct F16 {
  uint16_t bits = 0;
  constexpr F16() = default;
  constexpr explicit F16(float value) : bits(F16Bits(value)) {}
  constexpr operator float() const { return FromF16Bits(bits); }
};
struct Bf16 {
  uint16_t bits = 0;
  constexpr Bf16() = default;
  constexpr explicit Bf16(float value) : bits(Bf16Bits(value)) {}
  constexpr operator float() const { return FromBf16Bits(bits); }
};

namespace data_type_detail {
template <typename T>
struct TypeOf;
// clang-format off
template <> struct TypeOf<float> { static constexpr DataType kType = DataType::kF32; };
template <> struct TypeOf<F16> { static constexpr DataType kType = DataType::kF16; };
template <> struct TypeOf<Bf16> { static constexpr DataType kType = DataType::kBf16; };
template <> struct TypeOf<int8_t> { static constexpr DataType kType = DataType::kI8; };
template <> struct TypeOf<int16_t> { static constexpr DataType kType = DataType::kI16; };
template <> struct TypeOf<int32_t> { static constexpr DataType kType = DataType::kI32; };
template <> struct TypeOf<int64_t> { static constexpr DataType kType = DataType::kI64; };
template <> struct TypeOf<uint8_t> { static constexpr DataType kType = DataType::kU8; };
template <> struct TypeOf<uint16_t> { static constexpr DataType kType = DataType::kU16; };
template <> struct TypeOf<uint32_t> { static constexpr DataType kType = DataType::kU32; };
template <> struct TypeOf<uint64_t> { static constexpr DataType kType = DataType::kU64; };
template <> struct TypeOf<bool> { static constexpr DataType kType = DataType::kBool; };
// clang-format on
}  // namespace data_type_detail

// DataType::kF32 of float, kBool of bool, ...
template <typename T>
constexpr DataType kDataTypeOf = data_type_detail::TypeOf<std::remove_cv_t<T>>::kType;

// What VisitType passes: its member Type is the C++ type of the elements.
template <typename T>
struct TypeTag {
  using Type = T;
};

// Calls visit(TypeTag<T>()) with the C++ type of `type`, and returns what it returns.
template <typename Visit>
constexpr decltype(auto) VisitType(DataType type, const Visit& visit) {
  switch (type) {
    case DataType::kF32:
      break;
    case DataType::kF16:
      return visit(TypeTag<F16>());
    case DataType::kBf16:
      return visit(TypeTag<Bf16>());
    case DataType::kI8:
      return visit(TypeTag<int8_t>());
    case DataType::kI16:
      return visit(TypeTag<int16_t>());
    case DataType::kI32:
      return visit(TypeTag<int32_t>());
    case DataType::kI64:
      return visit(TypeTag<int64_t>());
    case DataType::kU8:
      return visit(TypeTag<uint8_t>());
    case DataType::kU16:
      return visit(TypeTag<uint16_t>());
    case DataType::kU32:
      return visit(TypeTag<uint32_t>());
    case DataType::kU64:
      return visit(TypeTag<uint64_t>());
    case DataType::kBool:
      return visit(TypeTag<bool>());
  }
  return visit(TypeTag<float>());
}

// Bytes of one element.
constexpr int64_t ElementBytes(DataType type) {
  return VisitType(type, [](auto tag) { return int64_t{sizeof(typename decltype(tag)::Type)}; });
}

constexpr bool IsFloating(DataType type) {
  return type == DataType::kF32 || type == DataType::kF16 || type == DataType::kBf16;
}
// Bools are none.
constexpr bool IsInteger(DataType type) { return !IsFloating(type) && type != DataType::kBool; }

// "f32", "bf16", "u8", "bool", ...
std::string_view DataTypeName(DataType type);
// The inverse. Throws Error(kUsage) naming the text and the known names.
DataType ParseDataType(std::string_view text);

// A number in another type, as ONNX's Cast has it: to a float type the nearest number; from a float to an
// integer toward zero, what does not fit becoming the nearest end of the range and NaN 0; from an integer to
// a smaller one its low bits; to bool whether it differs from 0.
template <typename To, typename From>
constexpr To ConvertElement(From value) {
  if constexpr (std::same_as<To, From>) {
    return value;
  } else if constexpr (std::same_as<From, F16> || std::same_as<From, Bf16>) {
    return ConvertElement<To>(static_cast<float>(value));
  } else if constexpr (std::same_as<To, bool>) {
    return value != From{0};
  } else if constexpr (std::same_as<To, F16> || std::same_as<To, Bf16>) {
    if constexpr (std::same_as<From, float>) return To(value);
    return To(RoundToOdd(static_cast<double>(value)));
  } else if constexpr (std::integral<To> && std::floating_point<From>) {
    // 2^digits is the first number above the range; both it and the lowest number are floats.
    constexpr From kEnd = static_cast<From>(To{1} << (std::numeric_limits<To>::digits - 1)) * From{2};
    constexpr From kLowest = static_cast<From>(std::numeric_limits<To>::lowest());
    if (value != value) return To{0};
    if (value >= kEnd) return std::numeric_limits<To>::max();
    if (value < kLowest) return std::numeric_limits<To>::lowest();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace tilesmith
