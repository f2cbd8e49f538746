#include "ops/onnx/node_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/error.h"
#include "ops/base/onnx_type.h"

namespace tilesmith {
namespace {

using onnx::AttributeProto;

// Writers of the first format versions left the type out.
AttributeProto::AttributeType TypeOf(const AttributeProto& attribute) {
  if (attribute.type() != AttributeProto::UNDEFINED) return attribute.type();
  if (attribute.has_f()) return AttributeProto::FLOAT;
  if (attribute.has_i()) return AttributeProto::INT;
  if (attribute.has_s()) return AttributeProto::STRING;
  if (attribute.has_t()) return AttributeProto::TENSOR;
  if (attribute.floats_size() > 0) return AttributeProto::FLOATS;
  if (attribute.strings_size() > 0) return AttributeProto::STRINGS;
  return AttributeProto::INTS;
}

Attribute MakeAttribute(const AttributeProto& proto) {
  switch (TypeOf(proto)) {
    case AttributeProto::INT:
      return proto.i();
    case AttributeProto::FLOAT:
      return proto.f();
    case AttributeProto::STRING:
      return proto.s();
    case AttributeProto::INTS:
      return std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
    case AttributeProto::FLOATS:
      return std::vector<float>(proto.floats().begin(), proto.floats().end());
    case AttributeProto::STRINGS:
      return std::vector<std::string>(proto.strings().begin(), proto.strings().end());
    default:
      throw Error(ErrorCode::kBadModel,
                  fmt::format("the attribute {} has the unsupported type {}", proto.name(),
                              onnx::AttributeProto_AttributeType_Name(TypeOf(proto))));
  }
}

void SetTensorAttribute(const std::string& name, const onnx::TensorProto& proto, const std::string& what,
                        TensorReader& reader, ModelNode& node) {
  node.attributes.insert_or_assign(name, reader.Read(proto, what));
  if (NarrowTypeOf(proto.data_type()) != nullptr)
    node.attributes.insert_or_assign(NarrowAttribute(name), int64_t{proto.data_type()});
}

struct AttributeSetter {
  onnx::AttributeProto& proto;

  void operator()(int64_t value) const {
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(value);
  }
  void operator()(float value) const {
    proto.set_type(onnx::AttributeProto::FLOAT);
    proto.set_f(value);
  }
  void operator()(const std::string& value) const {
    proto.set_type(onnx::AttributeProto::STRING);
    proto.set_s(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    proto.set_type(onnx::AttributeProto::INTS);
    for (const int64_t value : values) proto.add_ints(value);
  }
  void operator()(const std::vector<float>& values) const {
    proto.set_type(onnx::AttributeProto::FLOATS);
    for (const float value : values) proto.add_floats(value);
  }
  void operator()(const std::vector<std::string>& values) const {
    proto.set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& value : values) proto.add_strings(value);
  }
  void operator()(const TensorAttribute& tensor) const {
    proto.set_type(onnx::AttributeProto::TENSOR);
    SetTensor("", *tensor.value(), *proto.mutable_t());
  }
};

bool IsGraph(const AttributeProto& attribute) { return TypeOf(attribute) == AttributeProto::GRAPH; }

void AddNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& protos, int64_t opset,
              TensorReader& reader, NodeList& list) {
  for (const onnx::NodeProto& proto : protos) {
    list.nodes.push_back(MakeModelNode(proto, reader));
    list.nodes.back().opset = opset;
  }
}

}  // namespace

std::string QualifiedType(const std::string& domain, const std::string& op_type) {
  return domain.empty() || domain == "ai.onnx" ? op_type : domain + "." + op_type;
}

ModelNode MakeModelNode(const onnx::NodeProto& proto, TensorReader& reader) {
  ModelNode node{.name = proto.name(), .op_type = QualifiedType(proto.domain(), proto.op_type())};
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  for (const AttributeProto& attribute : proto.attribute()) {
    if (!attribute.ref_attr_name().empty()) {
      node.references.insert_or_assign(attribute.name(), attribute.ref_attr_name());
    } else if (IsGraph(attribute)) {
      node.bodies.insert_or_assign(attribute.name(),
                                   std::make_shared<NodeList>(MakeNodeList(attribute.g(), reader)));
    } else if (TypeOf(attribute) == AttributeProto::TENSOR) {
      const std::string what = fmt::format("the attribute {}", attribute.name());
      SetTensorAttribute(attribute.name(), attribute.t(), what, reader, node);
    } else {
      node.attributes.insert_or_assign(attribute.name(), MakeAttribute(attribute));
    }
  }
  return node;
}

namespace {

std::optional<NodeList::Declared> DeclaredBy(const onnx::ValueInfoProto& output) {
  const onnx::TypeProto_Tensor& tensor = output.type().tensor_type();
  const std::optional<DataType> type = TypeOfOnnx(tensor.elem_type());
  if (!type) return std::nullopt;
  NodeList::Declared declared{{}, *type};
  for (const auto& dim : tensor.shape().dim()) {
    declared.shape.push_back(std::max<int64_t>(dim.dim_value(), 0));
  }
  return declared;
}

}  // namespace

NodeList MakeNodeList(const onnx::GraphProto& proto, TensorReader& reader) {
  NodeList list;
  for (const onnx::ValueInfoProto& output : proto.output()) list.declared.push_back(DeclaredBy(output));
  for (const onnx::ValueInfoProto& input : proto.input()) list.inputs.push_back(input.name());
  for (const onnx::ValueInfoProto& output : proto.output()) list.outputs.push_back(output.name());
  for (const onnx::TensorProto& initializer : proto.initializer()) {
    ModelNode constant{.op_type = "Constant", .outputs = {initializer.name()}};
    const std::string what = fmt::format("initializer \"{}\"", initializer.name());
    SetTensorAttribute("value", initializer, what, reader, constant);
    list.nodes.push_back(std::move(constant));
  }
  AddNodes(proto.node(), 0, reader, list);
  return list;
}

NodeList MakeNodeList(const onnx::FunctionProto& proto, TensorReader& reader) {
  NodeList list;
  list.inputs.assign(proto.input().begin(), proto.input().end());
  list.outputs.assign(proto.output().begin(), proto.output().end());
  int64_t opset = 0;
  for (const onnx::OperatorSetIdProto& import : proto.opset_import()) {
    if (QualifiedType(import.domain(), "").empty()) opset = import.version();
  }
  AddNodes(proto.node(), opset, reader, list);
  return list;
}

void SetAttribute(const std::string& name, const Attribute& value, onnx::AttributeProto& proto) {
  proto.set_name(name);
  std::visit(AttributeSetter{proto}, value);
}

}  // namespace tilesmith
