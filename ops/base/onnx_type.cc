#include "ops/base/onnx_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

namespace tilesmith {
namespace {

struct Numbered {
  int32_t number;
  DataType type;
};
constexpr int32_t kDouble = 11;
constexpr std::array<Numbered, kDataTypes> kNumbers = {{{1, DataType::kF32},
                                                        {2, DataType::kU8},
                                                        {3, DataType::kI8},
                                                        {4, DataType::kU16},
                                                        {5, DataType::kI16},
                                                        {6, DataType::kI32},
                                                        {7, DataType::kI64},
                                                        {9, DataType::kBool},
                                                        {10, DataType::kF16},
                                                        {12, DataType::kU32},
                                                        {13, DataType::kU64},
                                                        {16, DataType::kBf16}}};
static_assert(kNumbers.back().number != 0, "each type has a number");

// By their numbers.
constexpr std::string_view kTypeNames[] = {
    "UNDEFINED", "FLOAT",      "UINT8",      "INT8",         "UINT16",         "INT16",      "INT32",
    "INT64",     "STRING",     "BOOL",       "FLOAT16",      "DOUBLE",         "UINT32",     "UINT64",
    "COMPLEX64", "COMPLEX128", "BFLOAT16",   "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ",
    "UINT4",     "INT4",       "FLOAT4E2M1", "FLOAT8E8M0",   "UINT2",          "INT2"};

using Special = NarrowType::Special;
constexpr NarrowType kNarrow[] = {{17, 8, DataType::kF32, 0, 0, 4, 3, 7, Special::kLastIsNan},
                                  {18, 8, DataType::kF32, 0, 0, 4, 3, 8, Special::kNegativeZeroIsNan},
                                  {19, 8, DataType::kF32, 0, 0, 5, 2, 15, Special::kIeee},
                                  {20, 8, DataType::kF32, 0, 0, 5, 2, 16, Special::kNegativeZeroIsNan},
                                  {21, 4, DataType::kU8, 0, 15},
                                  {22, 4, DataType::kI8, -8, 7},
                                  {23, 4, DataType::kF32, 0, 0, 2, 1, 1, Special::kNone},
                                  {24, 8, DataType::kF32, 0, 0, 8, 0, 127, Special::kLastIsNan},
                                  {25, 2, DataType::kU8, 0, 3},
                                  {26, 2, DataType::kI8, -2, 1}};

}  // namespace

std::optional<DataType> TypeOfOnnx(int64_t number) {
  if (number == kDouble) return DataType::kF32;
  for (const Numbered& known : kNumbers) {
    if (known.number == number) return known.type;
  }
  return std::nullopt;
}

int64_t OnnxElementBits(int64_t number) {
  if (const NarrowType* const narrow = NarrowTypeOf(number)) return narrow->bits;
  if (number == kDouble) return 64;
  const std::optional<DataType> type = TypeOfOnnx(number);
  return type ? 8 * ElementBytes(*type) : 0;
}

int32_t OnnxTypeNumber(DataType type) {
  for (const Numbered& known : kNumbers) {
    if (known.type == type) return known.number;
  }
  return 0;
}

std::string OnnxTypeName(int64_t number) {
  const bool named = number >= 0 && number < std::ssize(kTypeNames);
  return named ? std::string(kTypeNames[number]) : fmt::format("element type {}", number);
}

const NarrowType* NarrowTypeOf(int64_t number) {
  const auto* const found = std::ranges::find(kNarrow, number, &NarrowType::number);
  return found == std::end(kNarrow) ? nullptr : found;
}

int64_t PackedBytes(const NarrowType& type, int64_t count) { return CeilDiv(count, int64_t{8} / type.bits); }

float NarrowValue(const NarrowType& type, uint8_t code) {
  const int bits = code & ((1 << type.bits) - 1);
  if (type.unpacked != DataType::kF32)
    return static_cast<float>(bits > type.high ? bits - (1 << type.bits) : bits);
  const int e = type.exponent_bits, m = type.mantissa_bits;
  const bool negative = type.bits > e + m && (bits >> (e + m)) != 0;  // FLOAT8E8M0 has no sign
  const int exponent = bits >> m & ((1 << e) - 1), fraction = bits & ((1 << m) - 1);
  const bool last_exponent = exponent == (1 << e) - 1;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (type.special == Special::kNegativeZeroIsNan && negative && exponent == 0 && fraction == 0) return kNan;
  if (type.special == Special::kLastIsNan && last_exponent && fraction == (1 << m) - 1) return kNan;
  float magnitude;
  if (type.special == Special::kIeee && last_exponent) {
    magnitude = fraction == 0 ? std::numeric_limits<float>::infinity() : kNan;
  } else if (exponent == 0 && m > 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), 1 - type.bias - m);
  } else {
    magnitude = std::ldexp(static_cast<float>((1 << m) + fraction), exponent - type.bias - m);
  }
  return negative ? -magnitude : magnitude;
}

void Unpack(const NarrowType& type, std::span<const uint8_t> packed, Tensor& to) {
  std::array<float, 256> values;
  for (int code = 0; code < 256; ++code) values[code] = NarrowValue(type, static_cast<uint8_t>(code));
  const int per_byte = 8 / type.bits;
  VisitType(type.unpacked, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T* const out = to.data<T>();
    for (int64_t i = 0; i < to.size(); ++i) {
      const int code = packed[i / per_byte] >> (i % per_byte * type.bits);
      out[i] = static_cast<T>(values[code]);
    }
  });
}

}  // namespace tilesmith
