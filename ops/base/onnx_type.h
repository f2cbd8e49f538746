// ONNX's numbers for element types (TensorProto.DataType).
#pragma once

#include <optional>

#include "layouts/data_type.h"

namespace tilesmith {

// What a tensor of that type becomes; nullopt for those that are not supported (strings, complex numbers,
// numbers of 8 and 4 bits with exponents). Doubles become floats.
std::optional<DataType> TypeOfOnnx(int64_t number);
// Bits that an element takes in a file; 0 for strings and what no release of ONNX has a number for.
int64_t OnnxElementBits(int64_t number);
// The number of a type.
int32_t OnnxTypeNumber(DataType type);

}  // namespace tilesmith
