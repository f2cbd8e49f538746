// Tensors as ONNX stores them.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "layouts/tensor.h"

namespace tilesmith {

// In the type that it is computed in (ComputedType, onnx_type.h). Throws Error(kBadModel) starting with
// `what` when the data is external, of another type, or does not fill the shape.
Tensor TensorFromProto(const onnx::TensorProto& proto, const std::string& what);
// The same in the type that it has, but for doubles, which become floats.
Tensor StoredTensorFromProto(const onnx::TensorProto& proto, const std::string& what);

void SetTensor(const std::string& name, const Tensor& tensor, onnx::TensorProto& proto);
// A float tensor of a graph's interface.
void SetFloatInfo(const std::string& name, const Shape& shape, onnx::ValueInfoProto& proto);

// An empty model of ours.
onnx::ModelProto NewModelProto(const std::string& graph_name, int64_t opset);
// Throws Error(kUsage) naming the graph when it would be 2 GiB or more, where ONNX files end.
std::string Serialize(const onnx::ModelProto& model);

// "FLOAT16"; a number for values this ONNX release has no name for.
std::string ElementTypeName(int32_t type);

}  // namespace tilesmith
