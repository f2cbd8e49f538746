#include "ops/onnx/importer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "layouts/base/error.h"
#include "layouts/base/visible.h"
#include "ops/base/input.h"
#include "ops/base/op_registry.h"
#include "ops/movement/view.h"
#include "ops/onnx/input_shape.h"
#include "ops/onnx/node_spec.h"
#include "ops/onnx/tensor_proto.h"

namespace tilesmith {
namespace {

constexpr int64_t kFirstOpset = 1;
constexpr int64_t kLastOpset = 21;
// From here on every importer knows its operator; before, only these mean what they mean today.
constexpr int64_t kFirstFullOpset = 6;
const std::set<std::string_view> kUnchangedOperators = {"AveragePool",       "Conv",          "Flatten",
                                                        "GlobalAveragePool", "GlobalMaxPool", "MaxPool",
                                                        "Softmax",           "Transpose"};

// What importing may spend for each element of an initializer, beside SizeLimits::folded_operations: weights
// are cast, scaled and transposed.
constexpr int64_t kOperationsPerElement = 64;

// A tensor of the model: a constant, a node's output, or unknown because the node that computes it is among
// the unsupported ones.
struct Value {
  NodeInput info;
  std::optional<Graph::NodeId> node;
  bool known = true;
};

Value ConstantValue(std::shared_ptr<const Tensor> tensor) {
  Value value;
  value.info.shape = tensor->shape();
  value.info.type = tensor->type();
  value.info.constant = std::move(tensor);
  return value;
}
Value ConstantValue(Tensor tensor) {
  return ConstantValue(std::make_shared<const Tensor>(std::move(tensor)));
}

// Clearing would keep the memory.
void FreeData(onnx::TensorProto& tensor) {
  std::string().swap(*tensor.mutable_raw_data());
  google::protobuf::RepeatedField<float>().Swap(tensor.mutable_float_data());
}

bool IsDefaultDomain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

class Importer {
 public:
  Importer(onnx::ModelProto& model, const std::string& source, const ImportOptions& options)
      : proto_(*model.mutable_graph()),
        source_(source),
        options_(options),
        opset_(DefaultOpset(model)),
        graph_(std::filesystem::path(source).stem().string(), options.limits),
        operations_left_(options.limits.folded_operations) {}

  Graph Import() {
    CheckOpset();
    AddConstants();
    AddInputs();
    CollectNames();
    for (const onnx::NodeProto& node : proto_.node()) AddNode(node);
    CheckProblems();
    for (const onnx::ValueInfoProto& output : proto_.output()) AddOutput(output.name());
    return std::move(graph_);
  }

 private:
  void CheckOpset() const;
  void CheckProblems() const;
  void CheckOptions() const;
  void AddConstants();
  void AddInputs();
  void CollectNames();
  void AddNode(const onnx::NodeProto& proto);
  std::vector<NodeInput> InputsOf(const onnx::NodeProto& proto) const;
  bool DependsOnUnknown(const onnx::NodeProto& proto) const;
  bool IsUsed(const std::string& tensor) const { return !tensor.empty() && used_tensors_.contains(tensor); }
  void CheckExtraOutputs(const onnx::NodeProto& proto) const;
  Value Build(const onnx::NodeProto& proto, const std::string& name, int output);
  void BuildOutputs(const onnx::NodeProto& proto, const std::string& name);
  Value Fold(const Op& op, const std::vector<const Tensor*>& constants);
  void Spend(double operations);
  // Under a name that terminals, JSON and Python can take.
  Graph::NodeId AddNamed(const std::string& name, OpPtr op, const std::vector<Graph::NodeId>& inputs) {
    return graph_.Add(VisibleLine(name), std::move(op), inputs);
  }
  Graph::NodeId NodeOf(const std::string& tensor);
  std::string NameFor(const onnx::NodeProto& proto) const;
  void AddOutput(const std::string& name);

  onnx::GraphProto& proto_;
  const std::string& source_;
  const ImportOptions& options_;
  int64_t opset_;
  Graph graph_;
  int64_t operations_left_;  // of SizeLimits::folded_operations
  std::unordered_map<std::string, Value> values_;
  std::unordered_set<std::string> used_tensors_;
  std::unordered_set<std::string> reserved_names_;  // of graph inputs and outputs
  std::vector<std::string> problems_;
};

void Importer::CheckOpset() const {
  if (opset_ >= kFirstOpset && opset_ <= kLastOpset) return;
  throw Error(ErrorCode::kBadModel,
              opset_ == 0 ? fmt::format("{}: the model names no opset of the default domain", source_)
                          : fmt::format("{}: opset {} is not supported ({} to {} are)", source_, opset_,
                                        kFirstOpset, kLastOpset));
}

void Importer::CheckProblems() const {
  if (problems_.empty()) return;
  throw Error(ErrorCode::kBadModel, problems_.size() == 1
                                        ? fmt::format("{}: not supported: {}", source_, problems_[0])
                                        : fmt::format("{}: {} things are not supported:\n  {}", source_,
                                                      problems_.size(), fmt::join(problems_, "\n  ")));
}

void Importer::AddConstants() {
  for (onnx::TensorProto& initializer : *proto_.mutable_initializer()) {
    if (options_.constants.contains(initializer.name())) continue;
    try {
      values_[initializer.name()] =
          ConstantValue(TensorFromProto(initializer, fmt::format("initializer \"{}\"", initializer.name())));
      operations_left_ += kOperationsPerElement * ElementCount(values_[initializer.name()].info.shape);
      FreeData(initializer);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadModel) throw;
      problems_.push_back(error.what());
      values_[initializer.name()].known = false;
    }
  }
  for (const onnx::SparseTensorProto& sparse : proto_.sparse_initializer()) {
    problems_.push_back(fmt::format("initializer \"{}\": sparse tensors", sparse.values().name()));
    values_[sparse.values().name()].known = false;
  }
  for (const auto& [name, tensor] : options_.constants) values_[name] = ConstantValue(tensor);
}

void Importer::AddInputs() {
  CheckOptions();
  for (const onnx::ValueInfoProto& input : proto_.input()) {
    if (values_.contains(input.name())) continue;
    try {
      Value value;
      value.info.shape = ResolveInputShape(input, options_);
      value.info.type = InputType(input);
      value.node = AddNamed(input.name(), std::make_shared<InputOp>(value.info.shape, value.info.type), {});
      values_[input.name()] = value;
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", source_, error.what()));
    }
  }
}

// An option that matches nothing is a typing error of the user.
void Importer::CheckOptions() const {
  std::set<std::string> inputs, dims;
  for (const onnx::ValueInfoProto& input : proto_.input()) {
    inputs.insert(input.name());
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (!dim.dim_param().empty()) dims.insert(dim.dim_param());
    }
  }
  const auto need = [&](const std::string& name, const std::set<std::string>& known, std::string_view what) {
    if (known.contains(name)) return;
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: no {} \"{}\" (known: {})", source_, what, name, fmt::join(known, ", ")));
  };
  for (const auto& [name, shape] : options_.input_shapes) need(name, inputs, "input");
  for (const auto& [name, value] : options_.dims) need(name, dims, "symbolic dimension");
  for (const onnx::TensorProto& initializer : proto_.initializer()) inputs.insert(initializer.name());
  for (const auto& [name, tensor] : options_.constants) need(name, inputs, "input or initializer");
}

void Importer::CollectNames() {
  for (const onnx::NodeProto& node : proto_.node()) {
    used_tensors_.insert(node.input().begin(), node.input().end());
  }
  for (const onnx::ValueInfoProto& output : proto_.output()) {
    used_tensors_.insert(output.name());
    reserved_names_.insert(output.name());
  }
  for (const onnx::ValueInfoProto& input : proto_.input()) reserved_names_.insert(input.name());
}

std::string Importer::NameFor(const onnx::NodeProto& proto) const {
  std::string output = proto.output_size() > 0 ? proto.output(0) : "";
  if (reserved_names_.contains(output) || proto.name().empty() || reserved_names_.contains(proto.name())) {
    return output;
  }
  return proto.name();
}

bool Importer::DependsOnUnknown(const onnx::NodeProto& proto) const {
  for (const std::string& tensor : proto.input()) {
    const auto found = values_.find(tensor);
    if (found != values_.end() && !found->second.known) return true;
  }
  return false;
}

std::vector<NodeInput> Importer::InputsOf(const onnx::NodeProto& proto) const {
  std::vector<NodeInput> inputs;
  for (const std::string& tensor : proto.input()) {
    if (tensor.empty()) {
      inputs.push_back({.present = false, .shape = {}, .constant = nullptr});
      continue;
    }
    const auto found = values_.find(tensor);
    if (found == values_.end()) {
      throw Error(ErrorCode::kBadModel,
                  fmt::format("its input \"{}\" is computed by no earlier node", tensor));
    }
    inputs.push_back(found->second.info);
  }
  return inputs;
}

void Importer::CheckExtraOutputs(const onnx::NodeProto& proto) const {
  for (int i = 1; i < proto.output_size(); ++i) {
    if (!IsUsed(proto.output(i))) continue;
    throw Error(
        ErrorCode::kBadModel,
        fmt::format("its output {} (\"{}\") is used, only the first is supported", i, proto.output(i)));
  }
}

Graph::NodeId Importer::NodeOf(const std::string& tensor) {
  Value& value = values_.at(tensor);
  if (!value.node) value.node = AddNamed(tensor, std::make_shared<ConstantOp>(value.info.constant), {});
  return *value.node;
}

// Every output that somebody reads; of most operators that may be the first only.
void Importer::BuildOutputs(const onnx::NodeProto& proto, const std::string& name) {
  const bool many = FindOpImporter(proto.op_type())->many_outputs;
  if (!many) CheckExtraOutputs(proto);
  for (int i = 0; i < (many ? proto.output_size() : std::min(1, proto.output_size())); ++i) {
    if (many && !IsUsed(proto.output(i))) continue;
    if (values_.contains(proto.output(i))) {
      throw Error(ErrorCode::kBadModel,
                  fmt::format("its output \"{}\" is the name of an earlier tensor", proto.output(i)));
    }
    values_.emplace(proto.output(i), Build(proto, i == 0 ? name : proto.output(i), i));
  }
}

Value Importer::Build(const onnx::NodeProto& proto, const std::string& name, int output) {
  const OpImporter* importer = FindOpImporter(proto.op_type());
  NodeSpec spec = MakeNodeSpec(proto, name, opset_, InputsOf(proto));
  spec.output = output;
  spec.outputs = proto.output_size();
  spec.limits = graph_.limits();
  spec.limits.folded_operations = operations_left_;
  const BuiltOp built = importer->build(spec);
  std::vector<const Tensor*> constants;
  for (const int index : built.data_inputs) {
    if (!spec.HasInput(index)) throw Error(ErrorCode::kBadModel, fmt::format("input {} is missing", index));
    if (spec.inputs[index].constant) constants.push_back(spec.inputs[index].constant.get());
  }
  if (const auto* constant = dynamic_cast<const ConstantOp*>(built.op.get())) {
    const int64_t elements = constant->value()->size();
    if (proto.op_type() == "Constant") {
      operations_left_ += kOperationsPerElement * elements;
    } else {
      Spend(static_cast<double>(elements));
    }
    return ConstantValue(constant->value());
  }
  if (constants.size() == built.data_inputs.size()) return Fold(*built.op, constants);
  std::vector<Graph::NodeId> sources;
  for (const int index : built.data_inputs) {
    // A translated operand (opset 6) has another shape than the tensor it came from.
    const Value& value = values_.at(proto.input(index));
    const bool same = value.info.shape == spec.inputs[index].shape;
    sources.push_back(same ? NodeOf(proto.input(index))
                           : graph_.Add("", std::make_shared<ConstantOp>(spec.inputs[index].constant), {}));
  }
  Value value;
  value.node = AddNamed(name, built.op, sources);
  value.info.shape = graph_.node(*value.node).shape;
  value.info.type = graph_.node(*value.node).type;
  return value;
}

Value Importer::Fold(const Op& op, const std::vector<const Tensor*>& constants) {
  std::vector<Shape> shapes;
  std::vector<DataType> types;
  double operations = 0;
  for (const Tensor* constant : constants) {
    shapes.push_back(constant->shape());
    types.push_back(constant->type());
    operations += static_cast<double>(constant->size());
  }
  op.OutputType(types);
  const Shape shape = op.InferShape(shapes);
  CheckShape(shape, graph_.limits());
  Spend(operations + static_cast<double>(ElementCount(shape)) + op.Flops(shapes));
  return ConstantValue(op.Reference(constants));
}

void Importer::Spend(double operations) {
  if (operations > static_cast<double>(operations_left_)) {
    throw Error(
        ErrorCode::kBadModel,
        fmt::format("computing what depends on constants only takes {:.2g} operations more, {:.2g} are "
                    "left (of {:.2g}, and {} for each element of an initializer)",
                    operations, static_cast<double>(operations_left_),
                    static_cast<double>(graph_.limits().folded_operations), kOperationsPerElement));
  }
  operations_left_ -= static_cast<int64_t>(operations);
}

void Importer::AddNode(const onnx::NodeProto& proto) {
  const std::string name = NameFor(proto);
  std::string reason;
  if (!IsDefaultDomain(proto.domain())) {
    reason = fmt::format("the domain \"{}\" is not supported", proto.domain());
  } else if (FindOpImporter(proto.op_type()) == nullptr) {
    reason = "the operator is not supported";
  } else if (opset_ < kFirstFullOpset && !kUnchangedOperators.contains(proto.op_type())) {
    reason = fmt::format("its form in opset {} is not supported", opset_);
  } else if (!DependsOnUnknown(proto)) {
    try {
      BuildOutputs(proto, name);
      return;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadModel && error.code() != ErrorCode::kUsage) throw;
      reason = error.what();
    }
  }
  if (!reason.empty()) {
    const std::string prefix = fmt::format("node \"{}\" ({}): ", name, proto.op_type());
    if (reason.starts_with(prefix)) reason.erase(0, prefix.size());
    problems_.push_back(fmt::format("{} (node \"{}\"): {}", proto.op_type(), name, reason));
  }
  Value unknown;
  unknown.known = false;
  for (const std::string& output : proto.output()) {
    if (!output.empty()) values_.emplace(output, unknown);
  }
}

void Importer::AddOutput(const std::string& name) {
  if (!values_.contains(name)) {
    throw Error(ErrorCode::kBadModel, fmt::format("{}: no node computes the output \"{}\"", source_, name));
  }
  Graph::NodeId node = NodeOf(name);
  if (graph_.IsOutput(node)) node = AddNamed(name, std::make_shared<ViewOp>("Identity"), {node});
  graph_.MarkOutput(node);
}

}  // namespace

int64_t DefaultOpset(const onnx::ModelProto& model) {
  for (const onnx::OperatorSetIdProto& opset : model.opset_import()) {
    if (IsDefaultDomain(opset.domain())) return opset.version();
  }
  return 0;
}

Graph ImportModel(onnx::ModelProto model, const std::string& source, const ImportOptions& options) {
  return Importer(model, source, options).Import();
}

}  // namespace tilesmith
