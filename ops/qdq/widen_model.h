// A model of 16-bit floats as its twin of f32.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace tilesmith {

// Tensors of f16 and bf16 become f32, as importing computes them (onnx_import.h): constants are widened, and
// nodes that are asked for such a type give f32. Inputs and outputs of the model stay what they are, under
// their names, behind and in front of Casts of their own; what is computed of input "x", and what output "x"
// is made of, is the tensor "x.f32". Bodies of loops and branches and functions too. Whether there was
// anything to do: other models are left alone. Throws Error(kBadModel) starting with `source` where a
// constant cannot be read.
bool WidenModel(onnx::ModelProto& model, const std::string& source);

}  // namespace tilesmith
