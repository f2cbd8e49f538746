#include "ops/onnx/host_model.h"

#include <fmt/format.h>

#include "ops/onnx/importer.h"
#include "ops/onnx/node_spec.h"
#include "ops/onnx/tensor_proto.h"

namespace tilesmith {
namespace {

// Without the constants' data.
onnx::ModelProto ProtoOf(const HostModel& model) {
  onnx::ModelProto proto = NewModelProto(model.name, model.opset);
  onnx::GraphProto& graph = *proto.mutable_graph();
  for (const auto& [name, shape] : model.inputs) {
    onnx::ValueInfoProto& input = *graph.add_input();
    SetFloatInfo(name, shape, input);
    if (!shape.empty() && shape[0] == kOpenSize)
      input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("N");
  }
  for (const HostConstant& constant : model.constants) {
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(constant.name);
    tensor.set_data_type(constant.type);
    for (const int64_t size : constant.shape) tensor.add_dims(size);
  }
  for (const HostNode& node : model.nodes) {
    onnx::NodeProto& to = *graph.add_node();
    to.set_name(node.name);
    to.set_op_type(node.op_type);
    to.set_domain(node.domain);
    for (const std::string& input : node.inputs) to.add_input(input);
    for (const std::string& output : node.outputs) to.add_output(output);
    for (const auto& [name, value] : node.attributes) SetAttribute(name, value, *to.add_attribute());
  }
  for (const std::string& name : model.outputs) {
    onnx::ValueInfoProto& output = *graph.add_output();
    output.set_name(name);
    output.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  }
  return proto;
}

}  // namespace

Graph ImportHostModel(const HostModel& model, const ImportOptions& options) {
  ParsedModel parsed{ProtoOf(model)};
  std::map<std::string, std::span<const std::byte>> parts;
  for (const HostConstant& constant : model.constants) {
    const std::string location = fmt::format("constant {}", parts.size());
    parsed.data.push_back({location, 0, std::ssize(constant.bytes)});
    parts[location] = constant.bytes;
  }
  parsed.file = PartsInMemory(std::move(parts));
  return TakeModel(std::move(parsed), model.name, TensorReader()).Import(options);
}

std::string OnnxBytes(const HostModel& model) {
  onnx::ModelProto proto = ProtoOf(model);
  for (size_t i = 0; i < model.constants.size(); ++i) {
    const std::span<const std::byte> bytes = model.constants[i].bytes;
    proto.mutable_graph()->mutable_initializer(static_cast<int>(i))->set_raw_data(bytes.data(), bytes.size());
  }
  return Serialize(proto);
}

}  // namespace tilesmith
