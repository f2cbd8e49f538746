#include "ops/onnx/onnx_export.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <climits>

#include "layouts/base/error.h"
#include "ops/base/onnx_type.h"

namespace tilesmith {
namespace {

constexpr int64_t kIrVersion = 7;  // of ONNX 1.8, whose opset is 13

void SetTensor(const std::string& name, const Tensor& tensor, onnx::TensorProto& proto) {
  proto.set_name(name);
  for (const int64_t size : tensor.shape()) proto.add_dims(size);
  proto.set_data_type(OnnxTypeNumber(tensor.type()));
  proto.set_raw_data(tensor.raw(), static_cast<size_t>(tensor.bytes()));
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

void SetValueInfo(const std::pair<std::string, Shape>& value, onnx::ValueInfoProto& proto) {
  proto.set_name(value.first);
  onnx::TypeProto::Tensor& type = *proto.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape();  // present also when it has no sizes
  for (const int64_t size : value.second) type.mutable_shape()->add_dim()->set_dim_value(size);
}

void AddNode(const ListedNode& node, onnx::GraphProto& graph) {
  onnx::NodeProto& proto = *graph.add_node();
  proto.set_name(node.name);
  proto.set_op_type(node.op_type);
  proto.add_output(node.name);
  for (const std::string& input : node.inputs) proto.add_input(input);
  for (size_t i = 0; i < node.constants.size(); ++i) {
    const std::string name = fmt::format("{}.constant{}", node.name, i);
    proto.add_input(name);
    SetTensor(name, *node.constants[i], *graph.add_initializer());
  }
  for (const auto& [name, value] : node.attributes) {
    onnx::AttributeProto& attribute = *proto.add_attribute();
    attribute.set_name(name);
    std::visit(AttributeSetter{attribute}, value);
  }
}

}  // namespace

std::string OnnxBytes(const ModelListing& listing) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("tilesmith");
  model.add_opset_import()->set_version(listing.opset);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name(listing.name);
  for (const auto& input : listing.inputs) SetValueInfo(input, *graph.add_input());
  for (const auto& output : listing.outputs) SetValueInfo(output, *graph.add_output());
  for (const ListedNode& node : listing.nodes) AddNode(node, graph);
  const size_t bytes = model.ByteSizeLong();
  if (bytes > INT_MAX) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} would be {} bytes; ONNX files end at 2 GiB", listing.name, bytes));
  }
  return model.SerializeAsString();
}

}  // namespace tilesmith
