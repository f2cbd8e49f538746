// ONNX's numbers for element types (TensorProto.DataType), and what becomes of types that we have none for.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "layouts/tensor.h"

namespace tilesmith {

// What a tensor of that type is at the ends of a network; nullopt for those that are not supported (strings,
// complex numbers, numbers of 8 and 4 bits with exponents). Doubles become floats.
std::optional<DataType> TypeOfOnnx(int64_t number);
// Bits that an element takes in a file; 0 for types that are not read.
int64_t OnnxElementBits(int64_t number);
// What it is between them: floats of 16 bits are computed in f32.
constexpr DataType ComputedType(DataType type) { return IsFloating(type) ? DataType::kF32 : type; }
// The number of a type.
int32_t OnnxTypeNumber(DataType type);
// "FLOAT16"; for numbers that ONNX gives to no type, "element type 99".
std::string OnnxTypeName(int64_t number);

// A type of 8 bits or fewer without a DataType of its own. Its numbers are constants only, and unpacked when
// a model is read: integers into bytes, numbers with an exponent into floats, which all of them are exactly.
struct NarrowType {
  int32_t number;  // ONNX's
  int bits;
  DataType unpacked;
  int32_t low = 0, high = 0;                           // of integers, the ends of the range
  int exponent_bits = 0, mantissa_bits = 0, bias = 0;  // of others
  enum class Special { kNone, kIeee, kLastIsNan, kNegativeZeroIsNan } special = Special::kNone;
};
// INT4, UINT4, INT2, UINT2, FLOAT4E2M1, FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ, FLOAT8E8M0;
// null for others.
const NarrowType* NarrowTypeOf(int64_t number);
// Bytes that `count` of its numbers take.
int64_t PackedBytes(const NarrowType& type, int64_t count);
// The number that the lowest `bits` of `code` stand for.
float NarrowValue(const NarrowType& type, uint8_t code);
// Numbers packed into bytes from the lowest bits on. Preconditions: `packed` has PackedBytes, `to` the type
// unpacked.
void Unpack(const NarrowType& type, std::span<const uint8_t> packed, Tensor& to);

// The attribute with ONNX's number of the type that a tensor attribute had before it was unpacked
// (NarrowType).
inline std::string NarrowAttribute(const std::string& name) { return name + ".type"; }

}  // namespace tilesmith
