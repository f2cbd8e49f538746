// What is done to a model before it is quantised.
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
// Whether there is, for which constants need not have their data.
bool CanBeWidened(onnx::ModelProto model);

constexpr int64_t kQdqOpset = 13;

// An older model's nodes in the words of opset 13, the first that has QuantizeLinear per channel: attributes
// that became inputs become those, Upsample becomes Resize, and a Softmax over several axes one over
// flattened ones; whatever else a model of opset 7 to 12 says means the same in 13. Bodies of loops and
// branches too. Models of opset 13 and more keep their nodes. Initializers are inputs no more. Throws
// Error(kBadModel) starting with `source` for older ones, and naming the node that opset 13 cannot say.
void RaiseOpset(onnx::ModelProto& model, const std::string& source);

// Batch normalization is taken into the weights of the convolution in front of it where nothing else reads
// what that computes and all parameters are constant floats: the convolution then writes the normalization's
// output. Throws Error(kBadModel) starting with `source` where a parameter does not hold what its shape says.
void FoldBatchNorms(onnx::GraphProto& graph, const std::string& source);

}  // namespace tilesmith
