// ONNX files under construction.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <vector>

#include "ops/onnx/onnx_import.h"

namespace tilesmith {

// A size, or the name of an open one.
struct OnnxDim {
  OnnxDim(int v) : value(v) {}  // 0, too, is a size and no pointer
  OnnxDim(int64_t v) : value(v) {}
  OnnxDim(const char* s) : symbol(s) {}
  int64_t value = -1;  // dynamic
  std::string symbol;
};

// A model under construction.
struct OnnxModel {
  onnx::ModelProto proto;
  explicit OnnxModel(int64_t opset = 13) {
    proto.set_ir_version(8);
    proto.add_opset_import()->set_version(opset);
  }
  onnx::GraphProto& graph() { return *proto.mutable_graph(); }

  void Input(const std::string& name, const std::vector<OnnxDim>& dims,
             int32_t type = onnx::TensorProto::FLOAT) {
    onnx::ValueInfoProto* input = graph().add_input();
    input->set_name(name);
    onnx::TypeProto_Tensor* tensor = input->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const OnnxDim& dim : dims) {
      auto* size = tensor->mutable_shape()->add_dim();
      if (dim.value >= 0) size->set_dim_value(dim.value);
      if (!dim.symbol.empty()) size->set_dim_param(dim.symbol);
    }
  }
  void Output(const std::string& name, std::optional<int32_t> type = {}) {
    onnx::ValueInfoProto* output = graph().add_output();
    output->set_name(name);
    if (type) output->mutable_type()->mutable_tensor_type()->set_elem_type(*type);
  }
  onnx::TensorProto& Weight(const std::string& name, const std::vector<int64_t>& dims, int32_t type) {
    onnx::TensorProto* tensor = graph().add_initializer();
    tensor->set_name(name);
    for (const int64_t dim : dims) tensor->add_dims(dim);
    tensor->set_data_type(type);
    return *tensor;
  }
  void Floats(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
    onnx::TensorProto& tensor = Weight(name, dims, onnx::TensorProto::FLOAT);
    for (const float value : values) tensor.add_float_data(value);
  }
  void Ints(const std::string& name, const std::vector<int64_t>& values) {
    onnx::TensorProto& tensor = Weight(name, {static_cast<int64_t>(values.size())}, onnx::TensorProto::INT64);
    for (const int64_t value : values) tensor.add_int64_data(value);
  }
  onnx::NodeProto& Node(const std::string& type, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& name = "") {
    onnx::NodeProto* node = graph().add_node();
    node->set_op_type(type);
    node->set_name(name);
    for (const std::string& input : inputs) node->add_input(input);
    for (const std::string& output : outputs) node->add_output(output);
    return *node;
  }
  std::string Bytes() const { return proto.SerializeAsString(); }
  Graph Import(const ImportOptions& options = {}) const {
    return ImportOnnxBytes(Bytes(), "net.onnx", options);
  }
};

inline void SetInt(onnx::NodeProto& node, const std::string& name, int64_t value) {
  onnx::AttributeProto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}
inline void SetInts(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute->add_ints(value);
}

}  // namespace tilesmith
