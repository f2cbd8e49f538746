#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "layouts/base/error.h"
#include "ops/onnx/importer.h"
#include "ops/onnx/tensor_proto.h"
#include "ops/qdq/prepare_model.h"
#include "ops/qdq/proto_index.h"

namespace tilesmith {
namespace {

constexpr int64_t kOldestOpset = 7;  // before it, broadcasting is asked for by attributes
constexpr int64_t kQdqIrVersion = 7;

Tensor IntList(const google::protobuf::RepeatedField<int64_t>& values) {
  Tensor tensor({values.size()}, Layout::Nchw(DataType::kI64));
  std::ranges::copy(values, tensor.ints());
  return tensor;
}

Tensor Scalar(float value) {
  Tensor tensor(Shape{});
  tensor.floats()[0] = value;
  return tensor;
}

class OpsetRaiser {
 public:
  OpsetRaiser(onnx::GraphProto& graph, int64_t opset, FreshNames& names, const std::string& source)
      : graph_(graph), opset_(opset), names_(names), source_(source) {}

  void Raise() {
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    nodes.Swap(graph_.mutable_node());
    for (onnx::NodeProto& node : nodes) {
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) OpsetRaiser(*attribute.mutable_g(), opset_, names_, source_).Raise();
        for (onnx::GraphProto& body : *attribute.mutable_graphs())
          OpsetRaiser(body, opset_, names_, source_).Raise();
      }
      if (IsDefaultDomain(node)) RaiseNode(node);
      *graph_.add_node() = std::move(node);
      for (onnx::NodeProto& after : after_) *graph_.add_node() = std::move(after);
      after_.clear();
    }
  }

 private:
  void RaiseNode(onnx::NodeProto& node) {
    const std::string& type = node.op_type();
    if (type == "Squeeze" || type == "Unsqueeze" || type == "ReduceSum") {
      ListToInput(node, "axes", 1);
    } else if (type == "Split") {
      ListToInput(node, "split", 1);
    } else if (type == "Clip" && opset_ < 11) {
      FloatToInput(node, "min", 1);
      FloatToInput(node, "max", 2);
    } else if (type == "Pad" && opset_ < 11) {
      ListToInput(node, "pads", 1);
      FloatToInput(node, "value", 2);
    } else if (type == "Slice" && opset_ < 10) {
      ListToInput(node, "starts", 1);
      ListToInput(node, "ends", 2);
      ListToInput(node, "axes", 3);
    } else if (type == "TopK" && opset_ < 10) {
      IntToInput(node, "k", 1);
    } else if (type == "Dropout" && opset_ < 12) {
      TakeAttribute(node, "ratio");  // of training
    } else if (type == "Scatter") {
      node.set_op_type("ScatterElements");
    } else if (type == "Upsample" || (type == "Resize" && opset_ < 11)) {
      RaiseUpsample(node);
    } else if (type == "Softmax" || type == "LogSoftmax" || type == "Hardmax") {
      RaiseSoftmax(node);
    } else if (type == "BatchNormalization" && opset_ < 9 && IntAttribute(node, "spatial", 1) == 0) {
      throw Error(ErrorCode::kBadModel,
                  fmt::format("{}: node \"{}\" ({}): spatial = 0 is not known to opset {}", source_,
                              node.name(), type, kQdqOpset));
    } else if (type == "BatchNormalization") {
      TakeAttribute(node, "spatial");
    }
  }

  static std::optional<onnx::AttributeProto> TakeAttribute(onnx::NodeProto& node, std::string_view name) {
    auto& attributes = *node.mutable_attribute();
    for (int i = 0; i < attributes.size(); ++i) {
      if (attributes[i].name() != name) continue;
      onnx::AttributeProto taken = attributes[i];
      attributes.DeleteSubrange(i, 1);
      return taken;
    }
    return std::nullopt;
  }

  void SetInput(onnx::NodeProto& node, int slot, const std::string& what, const Tensor& value) {
    while (node.input_size() <= slot) node.add_input("");
    const std::string name =
        names_.New(fmt::format("{}_{}", node.output_size() > 0 ? node.output(0) : "", what));
    SetTensor(name, value, *graph_.add_initializer());
    node.set_input(slot, name);
  }
  void ListToInput(onnx::NodeProto& node, const std::string& name, int slot) {
    if (const auto taken = TakeAttribute(node, name)) SetInput(node, slot, name, IntList(taken->ints()));
  }
  void FloatToInput(onnx::NodeProto& node, const std::string& name, int slot) {
    if (const auto taken = TakeAttribute(node, name)) SetInput(node, slot, name, Scalar(taken->f()));
  }
  void IntToInput(onnx::NodeProto& node, const std::string& name, int slot) {
    const auto taken = TakeAttribute(node, name);
    if (!taken) return;
    onnx::AttributeProto list;
    list.add_ints(taken->i());
    SetInput(node, slot, name, IntList(list.ints()));
  }

  void RaiseUpsample(onnx::NodeProto& node) {
    std::string scales = InputOf(node, 1);
    const std::string data = InputOf(node, 0);
    const auto listed = TakeAttribute(node, "scales");
    node.set_op_type("Resize");
    node.clear_input();
    for (const std::string& input : {data, std::string(), scales}) node.add_input(input);
    if (listed) {
      Tensor values({listed->floats_size()});
      std::ranges::copy(listed->floats(), values.floats());
      SetInput(node, 2, "scales", values);
    }
    AddText(node, "coordinate_transformation_mode", "asymmetric");
    AddText(node, "nearest_mode", "floor");
  }

  // Before opset 13 all axes from `axis` on are one.
  void RaiseSoftmax(onnx::NodeProto& node) {
    if (node.input_size() != 1 || node.output_size() != 1) return;
    const int64_t axis = IntAttribute(node, "axis", 1);
    TakeAttribute(node, "axis");
    AddInt(node, "axis", -1);
    if (axis == -1) return;
    const std::string input = node.input(0), output = node.output(0);
    const std::string shape = names_.New(output + "_shape"), flat = names_.New(output + "_flat_input"),
                      result = names_.New(output + "_flat");
    onnx::NodeProto softmax = std::move(node);
    softmax.set_input(0, flat);
    softmax.set_output(0, result);
    node = Made("Shape", {input}, shape);
    onnx::NodeProto flatten = Made("Flatten", {input}, flat);
    AddInt(flatten, "axis", axis);
    after_ = {std::move(flatten), std::move(softmax), Made("Reshape", {result, shape}, output)};
  }

  onnx::NodeProto Made(const std::string& type, const std::vector<std::string>& inputs,
                       const std::string& output) {
    onnx::NodeProto node;
    node.set_op_type(type);
    node.set_name(names_.New(output + "_" + type));
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }

  static void AddInt(onnx::NodeProto& node, const std::string& name, int64_t value) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  static void AddText(onnx::NodeProto& node, const std::string& name, const std::string& value) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(value);
  }

  onnx::GraphProto& graph_;
  const int64_t opset_;
  FreshNames& names_;
  const std::string& source_;
  std::vector<onnx::NodeProto> after_;  // the node that is being raised
};

// Up to version 3 of the format every initializer is an input as well; from 4 on one that is may be given
// from outside, and runtimes fold nothing that depends on it.
void TakeInitializersFromInputs(onnx::GraphProto& graph) {
  std::set<std::string> initializers;
  for (const onnx::TensorProto& initializer : graph.initializer()) initializers.insert(initializer.name());
  auto& inputs = *graph.mutable_input();
  inputs.erase(
      std::remove_if(inputs.begin(), inputs.end(),
                     [&](const onnx::ValueInfoProto& input) { return initializers.contains(input.name()); }),
      inputs.end());
}

}  // namespace

void RaiseOpset(onnx::ModelProto& model, const std::string& source) {
  const int64_t opset = DefaultOpset(model);
  if (opset < kOldestOpset) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("{}: models of opset {} and more can be quantised, it has {}", source,
                            kOldestOpset, opset));
  }
  TakeInitializersFromInputs(*model.mutable_graph());
  model.set_ir_version(std::max<int64_t>(model.ir_version(), kQdqIrVersion));
  if (opset >= kQdqOpset) return;
  FreshNames names(model.graph());
  OpsetRaiser(*model.mutable_graph(), opset, names, source).Raise();
  for (onnx::OperatorSetIdProto& import : *model.mutable_opset_import()) {
    if (import.domain().empty() || import.domain() == "ai.onnx") import.set_version(kQdqOpset);
  }
}

}  // namespace tilesmith
