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
// The attribute with ONNX's number of the type that a tensor attribute had before it was unpacked
// (NarrowType).
std::string NarrowAttribute(const std::string& name);
// "Conv", "com.microsoft.FusedConv".
std::string QualifiedType(const std::string& domain, const std::string& op_type);

// The node as importers want it. What opset 6 said with attributes that opset 7 dropped (broadcast, axis,
// is_test) is translated. Throws Error(kBadModel) with the reason when a legacy broadcast cannot be
// expressed.
NodeSpec MakeNodeSpec(const ModelNode& node, std::string name, int64_t opset, std::vector<NodeInput> inputs);

// The reverse for one attribute.
void SetAttribute(const std::string& name, const Attribute& value, onnx::AttributeProto& proto);

}  // namespace tilesmith
