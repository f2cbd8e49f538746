// ONNX's numbers for element types (TensorProto.DataType).
#pragma once

#include <optional>

#include "layouts/data_type.h"

namespace tilesmith {

// What a tensor of that type is at the ends of a network; nullopt for those that are not supported (strings,
// complex numbers, numbers of 8 and 4 bits with exponents). Doubles become floats.
std::optional<DataType> TypeOfOnnx(int64_t number);
// What it is between them: floats of 16 bits are computed in f32.
constexpr DataType ComputedType(DataType type) { return IsFloating(type) ? DataType::kF32 : type; }
// The number of a type.
int32_t OnnxTypeNumber(DataType type);

}  // namespace tilesmith
