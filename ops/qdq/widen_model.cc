#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ops/onnx/tensor_proto.h"
#include "ops/qdq/prepare_model.h"
#include "ops/qdq/proto_index.h"

namespace tilesmith {
namespace {

using onnx::TensorProto;

bool IsNarrow(int64_t type) { return type == TensorProto::FLOAT16 || type == TensorProto::BFLOAT16; }

// Attributes that say which type a node's result has: Cast's, EyeLike's, DequantizeLinear's.
constexpr std::string_view kTypeAttributes[] = {"to", "dtype", "output_dtype"};

class ModelWidener {
 public:
  // `looks`: what constants hold is not looked at, and not widened.
  ModelWidener(onnx::ModelProto& model, const std::string& source, bool looks)
      : model_(model), names_(model.graph()), source_(source), looks_(looks) {}

  bool Widen() {
    onnx::GraphProto& graph = *model_.mutable_graph();
    std::vector<onnx::NodeProto> in_front, behind;
    std::set<std::string> constants;
    for (const TensorProto& initializer : graph.initializer()) constants.insert(initializer.name());
    for (const onnx::ValueInfoProto& input : graph.input()) {
      if (IsNarrowInfo(input) && !constants.contains(input.name()))
        in_front.push_back(CastOf(input.name(), Renamed(input.name()), TensorProto::FLOAT));
    }
    for (const onnx::ValueInfoProto& output : graph.output()) {
      const int32_t type = output.type().tensor_type().elem_type();
      const bool is_input = renamed_.contains(output.name());
      if (IsNarrow(type) && !is_input) behind.push_back(CastOf(Renamed(output.name()), output.name(), type));
    }
    for (onnx::ValueInfoProto& input : *graph.mutable_input())
      if (constants.contains(input.name())) WidenInfo(input);
    WidenGraph(graph);
    for (onnx::FunctionProto& function : *model_.mutable_functions()) WidenNodes(*function.mutable_node());
    Surround(*graph.mutable_node(), std::move(in_front), std::move(behind));
    return changed_;
  }

 private:
  static bool IsNarrowInfo(const onnx::ValueInfoProto& info) {
    return IsNarrow(info.type().tensor_type().elem_type());
  }

  std::string Renamed(const std::string& tensor) {
    return renamed_.emplace(tensor, names_.New(tensor + ".f32")).first->second;
  }
  void Rename(std::string& tensor) const {
    if (const auto found = renamed_.find(tensor); found != renamed_.end()) tensor = found->second;
  }

  onnx::NodeProto CastOf(const std::string& from, const std::string& to, int32_t type) {
    onnx::NodeProto node;
    node.set_op_type("Cast");
    node.set_name(names_.New(to + "_Cast"));
    node.add_input(from);
    node.add_output(to);
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("to");
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(type);
    changed_ = true;
    return node;
  }

  void WidenInfo(onnx::ValueInfoProto& info) {
    if (!IsNarrowInfo(info)) return;
    info.mutable_type()->mutable_tensor_type()->set_elem_type(TensorProto::FLOAT);
    changed_ = true;
  }

  void WidenTensor(TensorProto& tensor) {
    if (!IsNarrow(tensor.data_type())) return;
    changed_ = true;
    if (looks_) return;
    const std::string name = tensor.name();
    const Tensor wide = TensorFromProto(tensor, fmt::format("{}: \"{}\"", source_, name));
    tensor.Clear();
    SetTensor(name, wide, tensor);
  }

  // All but the types of what the graph is given and gives.
  void WidenGraph(onnx::GraphProto& graph) {
    for (TensorProto& initializer : *graph.mutable_initializer()) {
      WidenTensor(initializer);
      Rename(*initializer.mutable_name());
    }
    for (onnx::ValueInfoProto& info : *graph.mutable_value_info()) {
      WidenInfo(info);
      Rename(*info.mutable_name());
    }
    WidenNodes(*graph.mutable_node());
  }

  void WidenNodes(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
    for (onnx::NodeProto& node : nodes) {
      for (std::string& input : *node.mutable_input()) Rename(input);
      for (std::string& output : *node.mutable_output()) Rename(output);
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) WidenAttribute(attribute);
    }
  }

  void WidenAttribute(onnx::AttributeProto& attribute) {
    const bool is_type = std::ranges::find(kTypeAttributes, attribute.name()) != std::end(kTypeAttributes);
    if (is_type && IsNarrow(attribute.i())) {
      attribute.set_i(TensorProto::FLOAT);
      changed_ = true;
    }
    if (attribute.has_t()) WidenTensor(*attribute.mutable_t());
    if (attribute.has_g()) WidenBody(*attribute.mutable_g());
    for (onnx::GraphProto& body : *attribute.mutable_graphs()) WidenBody(body);
  }

  void WidenBody(onnx::GraphProto& body) {
    for (auto* ends : {body.mutable_input(), body.mutable_output()}) {
      for (onnx::ValueInfoProto& info : *ends) {
        WidenInfo(info);
        Rename(*info.mutable_name());
      }
    }
    WidenGraph(body);
  }

  static void Surround(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                       std::vector<onnx::NodeProto> in_front, std::vector<onnx::NodeProto> behind) {
    google::protobuf::RepeatedPtrField<onnx::NodeProto> all;
    for (onnx::NodeProto& node : in_front) *all.Add() = std::move(node);
    for (onnx::NodeProto& node : nodes) *all.Add() = std::move(node);
    for (onnx::NodeProto& node : behind) *all.Add() = std::move(node);
    nodes.Swap(&all);
  }

  onnx::ModelProto& model_;
  FreshNames names_;
  const std::string& source_;
  const bool looks_;
  std::unordered_map<std::string, std::string> renamed_;  // tensors of the main graph
  bool changed_ = false;
};

}  // namespace

bool WidenModel(onnx::ModelProto& model, const std::string& source) {
  return ModelWidener(model, source, false).Widen();
}

bool CanBeWidened(onnx::ModelProto model) {
  const std::string nobody;  // is told of an error
  return ModelWidener(model, nobody, true).Widen();
}

}  // namespace tilesmith
