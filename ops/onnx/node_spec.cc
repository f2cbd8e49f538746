#include "ops/onnx/node_spec.h"

#include <fmt/format.h>

#include "layouts/base/error.h"
#include "ops/onnx/tensor_proto.h"

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
    case AttributeProto::TENSOR:
      return TensorFromProto(proto.t(), fmt::format("the attribute {}", proto.name()));
    default:
      throw Error(ErrorCode::kBadModel,
                  fmt::format("the attribute {} has the unsupported type {}", proto.name(),
                              onnx::AttributeProto_AttributeType_Name(TypeOf(proto))));
  }
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
  void operator()(const Tensor& value) const {
    proto.set_type(onnx::AttributeProto::TENSOR);
    SetTensor("", value, *proto.mutable_t());
  }
};

// Opset 6: with broadcast=1, the second operand's axes are matched with those of the first from `axis` on;
// numpy's rule, that of opset 7, matches the last ones.
void TranslateBroadcast(NodeSpec& spec) {
  if (!spec.Has("axis")) return;
  const int64_t rank = static_cast<int64_t>(spec.inputs[0].shape.size());
  NodeInput& operand = spec.inputs[1];
  const int64_t axis = spec.Int("axis", 0) + (spec.Int("axis", 0) < 0 ? rank : 0);
  const int64_t missing = rank - axis - static_cast<int64_t>(operand.shape.size());
  if (missing > 0 && operand.constant == nullptr) {
    throw Error(ErrorCode::kBadModel, fmt::format("broadcast along axis {} of a computed operand", axis));
  }
  if (missing <= 0) return;
  operand.shape.insert(operand.shape.end(), missing, 1);
  operand.constant = std::make_shared<Tensor>(operand.constant->Reshaped(operand.shape));
}

void TranslateOpset6(NodeSpec& spec) {
  const std::string& type = spec.op_type;
  if (type == "Add" || type == "Sub" || type == "Mul" || type == "Div") {
    if (spec.inputs.size() == 2 && spec.Int("broadcast", 0) != 0) TranslateBroadcast(spec);
    spec.attributes.erase("axis");
    spec.attributes.erase("broadcast");
  } else if (type == "Gemm") {
    spec.attributes.erase("broadcast");
  } else if (type == "BatchNormalization" || type == "Dropout") {
    spec.attributes.erase("is_test");
  }
}

}  // namespace

NodeSpec MakeNodeSpec(const onnx::NodeProto& proto, std::string name, int64_t opset,
                      std::vector<NodeInput> inputs) {
  NodeSpec spec;
  spec.name = std::move(name);
  spec.op_type = proto.op_type();
  spec.opset = opset;
  spec.inputs = std::move(inputs);
  for (const AttributeProto& attribute : proto.attribute()) {
    spec.attributes.insert_or_assign(attribute.name(), MakeAttribute(attribute));
  }
  if (opset < 7) TranslateOpset6(spec);
  return spec;
}

void SetAttribute(const std::string& name, const Attribute& value, onnx::AttributeProto& proto) {
  proto.set_name(name);
  std::visit(AttributeSetter{proto}, value);
}

}  // namespace tilesmith
