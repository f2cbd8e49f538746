// A node of a model file as the op importers want it.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "ops/base/op_registry.h"
#include "ops/onnx/tensor_proto.h"

namespace tilesmith {

// A node of a file, its bodies and attributes in their typed form. Throws Error(kBadModel) with the reason
// when an attribute's type is not supported, or a tensor cannot be read.
ModelNode MakeModelNode(const onnx::NodeProto& proto, TensorReader& reader);
// The same for all nodes of a body; its initializers become Constant nodes.
NodeList MakeNodeList(const onnx::GraphProto& proto, TensorReader& reader);
NodeList MakeNodeList(const onnx::FunctionProto& proto, TensorReader& reader);
// "Conv", "com.microsoft.FusedConv".
std::string QualifiedType(const std::string& domain, const std::string& op_type);

// The reverse for one attribute.
void SetAttribute(const std::string& name, const Attribute& value, onnx::AttributeProto& proto);

}  // namespace tilesmith
