// Tensors as ONNX stores them.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "layouts/tensor.h"

namespace tilesmith {

// In the type that it has, but for doubles, which become floats. Throws Error(kBadModel) starting with `what`
// when the data is external, of another type, or does not fill the shape.
Tensor TensorFromProto(const onnx::TensorProto& proto, const std::string& what);

// "FLOAT16"; a number for values this ONNX release has no name for.
std::string ElementTypeName(int32_t type);

}  // namespace tilesmith
