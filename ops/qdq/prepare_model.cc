#include "ops/qdq/prepare_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "layouts/base/error.h"
#include "ops/onnx/importer.h"
#include "ops/onnx/tensor_proto.h"
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

namespace {

constexpr int64_t kOldestOpset = 7;  // before it, broadcasting is asked for by attributes
constexpr int64_t kQdqIrVersion = 7;

Tensor IntList(const google::protobuf::RepeatedField<int64_t>& values) {
  Tensor tensor({values.size()}, Layout::Nchw(DataType::kI64));
  std::ranges::copy(values, tensor.ints());
  return tensor;
}

Tensor ScalarTensor(float value) {
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
    if (const auto taken = TakeAttribute(node, name)) SetInput(node, slot, name, ScalarTensor(taken->f()));
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

namespace {

// Factor and offset of each channel.
struct ChannelAffine {
  std::vector<double> factors, offsets;
};

class BatchNormFolder {
 public:
  BatchNormFolder(onnx::GraphProto& graph, const std::string& source)
      : graph_(graph), source_(source), index_(graph), names_(graph) {}

  void Fold() {
    std::set<int> folded;
    std::vector<onnx::TensorProto> constants;
    for (int i = 0; i < graph_.node_size(); ++i) {
      const onnx::NodeProto& norm = graph_.node(i);
      if (norm.op_type() != "BatchNormalization" || !IsDefaultDomain(norm) || norm.output_size() == 0)
        continue;
      const int conv = index_.Producer(InputOf(norm, 0));
      if (conv < 0 || folded.contains(conv) || !FoldInto(*graph_.mutable_node(conv), norm, constants))
        continue;
      folded.insert(i);
    }
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    nodes.Swap(graph_.mutable_node());
    for (int i = 0; i < nodes.size(); ++i) {
      if (!folded.contains(i)) *graph_.add_node() = std::move(nodes[i]);
    }
    for (onnx::TensorProto& constant : constants) *graph_.add_initializer() = std::move(constant);
    if (!folded.empty()) DropUnreadConstants(graph_);
  }

 private:
  std::optional<Tensor> Floats(const std::string& name) const {
    const onnx::TensorProto* proto = index_.Constant(name);
    if (proto == nullptr || proto->data_type() != onnx::TensorProto::FLOAT) return std::nullopt;
    return TensorFromProto(*proto, fmt::format("{}: \"{}\"", source_, name));
  }

  std::optional<ChannelAffine> AffineOf(const onnx::NodeProto& norm, int64_t channels) const {
    std::vector<Tensor> parameters;
    for (int slot = 1; slot < 5; ++slot) {
      std::optional<Tensor> values = Floats(InputOf(norm, slot));
      if (!values || values->size() != channels) return std::nullopt;
      parameters.push_back(*std::move(values));
    }
    const double epsilon = FloatAttribute(norm, "epsilon", 1e-5f);
    ChannelAffine affine;
    for (int64_t c = 0; c < channels; ++c) {
      const auto at = [&](int parameter) { return static_cast<double>(parameters[parameter].floats()[c]); };
      const double factor = at(0) / std::sqrt(at(3) + epsilon);
      affine.factors.push_back(factor);
      affine.offsets.push_back(at(1) - at(2) * factor);
    }
    return affine;
  }

  bool FoldInto(onnx::NodeProto& conv, const onnx::NodeProto& norm,
                std::vector<onnx::TensorProto>& constants) {
    if (conv.op_type() != "Conv" || !IsDefaultDomain(conv) || conv.output_size() != 1) return false;
    if (index_.OnlyReader(InputOf(norm, 0)) < 0 || IntAttribute(norm, "training_mode", 0) != 0) return false;
    for (int i = 1; i < norm.output_size(); ++i) {
      if (!index_.Readers(norm.output(i)).empty() || index_.IsReadElsewhere(norm.output(i))) return false;
    }
    std::optional<Tensor> weights = Floats(InputOf(conv, 1));
    if (!weights || weights->shape().empty() || weights->size() == 0) return false;
    const int64_t channels = weights->shape()[0];
    std::optional<Tensor> bias = InputOf(conv, 2).empty() ? Tensor({channels}) : Floats(InputOf(conv, 2));
    const std::optional<ChannelAffine> affine = AffineOf(norm, channels);
    if (!affine || !bias || bias->size() != channels) return false;
    const int64_t per_channel = weights->size() / channels;
    for (int64_t c = 0; c < channels; ++c) {
      const double factor = affine->factors[c];
      float* const of_channel = weights->floats() + c * per_channel;
      for (int64_t i = 0; i < per_channel; ++i) of_channel[i] = static_cast<float>(of_channel[i] * factor);
      bias->floats()[c] = static_cast<float>(bias->floats()[c] * factor + affine->offsets[c]);
    }
    SetConstant(conv, 1, "weights", *weights, constants);
    SetConstant(conv, 2, "bias", *bias, constants);
    conv.set_output(0, norm.output(0));
    return true;
  }

  void SetConstant(onnx::NodeProto& conv, int slot, const std::string& what, const Tensor& value,
                   std::vector<onnx::TensorProto>& constants) {
    const std::string name = names_.New(fmt::format("{}_{}", conv.output(0), what));
    while (conv.input_size() <= slot) conv.add_input("");
    conv.set_input(slot, name);
    SetTensor(name, value, constants.emplace_back());
  }

  onnx::GraphProto& graph_;
  const std::string& source_;
  const ProtoIndex index_;  // of the graph as it was: constants are read from it while nodes change
  FreshNames names_;
};

}  // namespace

void FoldBatchNorms(onnx::GraphProto& graph, const std::string& source) {
  BatchNormFolder(graph, source).Fold();
}

}  // namespace tilesmith
