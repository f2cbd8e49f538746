#include "ops/onnx/node_importer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "layouts/base/visible.h"
#include "ops/base/import_util.h"
#include "ops/base/input.h"
#include "ops/base/node_writer.h"
#include "ops/base/run_once.h"
#include "ops/movement/view.h"
#include "ops/onnx/node_spec.h"
#include "ops/onnx/node_tail.h"
#include "ops/quantize/quantize.h"

namespace tilesmith {
namespace {

// From here on every importer knows its operator; before, only these mean what they mean today.
constexpr int64_t kFirstFullOpset = 6;
constexpr std::string_view kUnchangedOperators[] = {
    "AveragePool", "Conv",    "Flatten",  "GlobalAveragePool", "GlobalMaxPool", "MaxPool",
    "Not",         "Softmax", "Softplus", "Softsign",          "Transpose"};

// What importing may spend for each element of an initializer, beside SizeLimits::folded_operations: weights
// are cast, scaled and transposed.
constexpr int64_t kOperationsPerElement = 64;
// Nodes written in the place of others, with the tensors that they read: loops unrolled, functions and
// branches inlined.
constexpr int64_t kMaxExpansion = 1 << 19;

int64_t SizeOf(const ModelNode& node) {
  int64_t size = 1 + std::ssize(node.inputs) + std::ssize(node.outputs);
  for (const auto& [name, body] : node.bodies) {
    for (const ModelNode& inner : body->nodes) size += SizeOf(inner);
  }
  return size;
}

}  // namespace

NodeImporter::NodeImporter(Graph graph, NodeImporterOptions options)
    : graph_(std::move(graph)),
      options_(std::move(options)),
      operations_left_(graph_.limits().folded_operations),
      expansion_left_(kMaxExpansion) {}

void NodeImporter::AddConstant(const std::string& name, std::shared_ptr<const Tensor> value,
                               bool initializer) {
  if (initializer) operations_left_ += kOperationsPerElement * value->size();
  Value& entry = values_[name];
  entry.info = {.shape = value->shape(), .type = value->type(), .constant = nullptr};
  entry.info.constant = std::move(value);
}

void NodeImporter::AddInput(const std::string& name, const Shape& shape, DataType type) {
  Value value;
  value.node = AddNamed(name, std::make_shared<InputOp>(shape, type), {});
  value.info.shape = shape;
  value.info.type = type;
  values_[name] = std::move(value);
}

void NodeImporter::AddUnknown(const std::string& name, const std::string& problem) {
  if (!problem.empty()) problems_.push_back({"", name, problem, 1});
  values_[name].state = State::kUnknown;
}

void NodeImporter::AddReader(const ModelNode& node) {
  read_.insert(node.inputs.begin(), node.inputs.end());
  for (const auto& [name, body] : node.bodies) {
    for (const std::string& tensor : FreeNames(*body)) read_.insert(tensor);
  }
}

void NodeImporter::AddProblem(const std::string& op_type, const std::string& name, std::string reason) {
  const std::string prefix = fmt::format("node \"{}\" ({}): ", name, op_type);
  if (reason.starts_with(prefix)) reason.erase(0, prefix.size());
  const auto found = std::ranges::find(problems_, op_type, &Problem::op_type);
  if (found == problems_.end()) {
    problems_.push_back({op_type, name, std::move(reason), 1});
  } else {
    ++found->count;
  }
}

void NodeImporter::CheckProblems() const {
  if (problems_.empty()) return;
  std::vector<std::string> lines;
  lines.reserve(problems_.size());
  for (const Problem& problem : problems_) {
    lines.push_back(problem.op_type.empty() ? problem.reason
                    : problem.count == 1    ? fmt::format("{} (node \"{}\"): {}", problem.op_type,
                                                          problem.first_node, problem.reason)
                                         : fmt::format("{} ({} nodes, the first \"{}\"): {}", problem.op_type,
                                                       problem.count, problem.first_node, problem.reason));
  }
  throw Error(ErrorCode::kBadModel,
              lines.size() == 1 ? fmt::format("{}: not supported: {}", options_.source, lines[0])
                                : fmt::format("{}: {} things are not supported:\n  {}", options_.source,
                                              lines.size(), fmt::join(lines, "\n  ")));
}

Graph::NodeId NodeImporter::AddNamed(const std::string& name, OpPtr op,
                                     const std::vector<Graph::NodeId>& inputs) {
  return graph_.Add(VisibleLine(name), std::move(op), inputs);  // as terminals, JSON and Python can take it
}

std::string NodeImporter::NameFor(const ModelNode& node) const {
  std::string output = node.outputs.empty() ? "" : node.outputs[0];
  return reserved_.contains(output) || node.name.empty() || reserved_.contains(node.name) ? output
                                                                                          : node.name;
}

bool NodeImporter::Reads(const ModelNode& node, State state) const {
  const auto is = [&](const std::string& tensor) {
    const auto found = values_.find(tensor);
    return found != values_.end() && found->second.state == state;
  };
  if (std::ranges::any_of(node.inputs, is)) return true;
  return std::ranges::any_of(
      node.bodies, [&](const auto& body) { return std::ranges::any_of(FreeNames(*body.second), is); });
}

std::vector<NodeInput> NodeImporter::InputsOf(const ModelNode& node) const {
  std::vector<NodeInput> inputs;
  for (const std::string& tensor : node.inputs) {
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

void NodeImporter::CheckExtraOutputs(const ModelNode& node) const {
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty() || !read_.contains(node.outputs[i])) continue;
    throw Error(
        ErrorCode::kBadModel,
        fmt::format("its output {} (\"{}\") is used, only the first is supported", i, node.outputs[i]));
  }
}

Graph::NodeId NodeImporter::NodeOf(const std::string& tensor) {
  Value& value = values_.at(tensor);
  if (!value.node) value.node = AddNamed(tensor, std::make_shared<ConstantOp>(value.info.constant), {});
  return *value.node;
}

NodeSpec NodeImporter::SpecOf(const ModelNode& node, const std::string& name, int output) const {
  NodeSpec spec = MakeNodeSpec(node, name, node.opset > 0 ? node.opset : options_.opset, InputsOf(node));
  spec.output = output;
  if (node.written) spec.scope = kMaxExpansion - expansion_left_;
  spec.limits = graph_.limits();
  spec.limits.folded_operations = operations_left_;
  spec.machine = options_.machine;
  return spec;
}

// The body of a function of the model's own.
BuiltOp NodeImporter::BuildCall(const NodeSpec& spec) const {
  NodeWriter writer(spec);
  writer.Inline(options_.functions->find(spec.op_type)->second, spec.input_names, spec.output_names,
                spec.attributes);
  return writer.Take();
}

void NodeImporter::Expand(BuiltOp built) {
  for (const ModelNode& node : built.nodes) expansion_left_ -= SizeOf(node);
  if (expansion_left_ < 0) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("loops, branches and functions amount to more than {} nodes and operands",
                            kMaxExpansion));
  }
  for (size_t i = built.nodes.size(); i-- > 0;) {
    AddReader(built.nodes[i]);
    built.nodes[i].written = true;
    pending_.push_front(std::move(built.nodes[i]));
  }
}

// Every output that somebody reads; of most operators that may be the first only.
void NodeImporter::BuildOutputs(const ModelNode& node, const std::string& name) {
  if (options_.functions && options_.functions->contains(node.op_type)) {
    return Expand(BuildCall(SpecOf(node, name, 0)));
  }
  if (node.op) {
    const NodeSpec spec = SpecOf(node, name, 0);
    const Value value = Build(spec, BuiltWithInputs(node.op, static_cast<int>(node.inputs.size())), true);
    values_.emplace(node.outputs.at(0), value);
    return;
  }
  const OpImporter* importer = FindOpImporter(node.op_type);
  const int outputs = static_cast<int>(node.outputs.size());
  for (int i = 0; i < (importer->many_outputs ? outputs : std::min(1, outputs)); ++i) {
    const std::string& output = node.outputs[i];
    if (importer->many_outputs && (output.empty() || !read_.contains(output))) continue;
    if (values_.contains(output)) {
      throw Error(ErrorCode::kBadModel,
                  fmt::format("its output \"{}\" is the name of an earlier tensor", output));
    }
    NodeSpec spec = SpecOf(node, i == 0 ? name : output, i);
    if (importer->many_outputs) {
      for (std::string& tensor : spec.output_names) {
        if (!read_.contains(tensor)) tensor.clear();
      }
    }
    BuiltOp built = importer->build(spec);
    if (!built.nodes.empty()) return Expand(std::move(built));
    if (!importer->many_outputs) CheckExtraOutputs(node);
    values_.emplace(output, Build(spec, built, node.written));
  }
}

NodeImporter::Value NodeImporter::Build(const NodeSpec& spec, const BuiltOp& built, bool written) {
  Spend(built.operations);
  std::vector<const Tensor*> constants;
  for (const int index : built.data_inputs) {
    if (!spec.HasInput(index)) throw Error(ErrorCode::kBadModel, fmt::format("input {} is missing", index));
    if (spec.inputs[index].constant) constants.push_back(spec.inputs[index].constant.get());
  }
  Value value;
  if (const auto* constant = dynamic_cast<const ConstantOp*>(built.op.get())) {
    value.info.constant = constant->value();
    if (spec.op_type == "Constant" && !written) {
      operations_left_ += kOperationsPerElement * value.info.constant->size();
    } else {
      Spend(static_cast<double>(value.info.constant->size()));
    }
  } else if (constants.size() == built.data_inputs.size()) {
    value = Fold(*built.op, constants);
    const auto* dequantize = dynamic_cast<const DequantizeLinearOp*>(built.op.get());
    if (dequantize != nullptr && dequantize->is_constant()) {
      value.info.stored =
          std::make_shared<const QuantizedTensor>(spec.inputs[0].constant, dequantize->quantization());
    }
    return value;
  } else {
    std::vector<Graph::NodeId> sources;
    for (const int index : built.data_inputs) {
      // A translated operand (opset 6) has another shape than the tensor it came from.
      const std::string& input = spec.input_names[index];
      const bool same = values_.at(input).info.shape == spec.inputs[index].shape;
      sources.push_back(same ? NodeOf(input)
                             : graph_.Add("", std::make_shared<ConstantOp>(spec.inputs[index].constant), {}));
    }
    value.node = AddNamed(spec.name, built.op, sources);
    value.info.shape = graph_.node(*value.node).shape;
    value.info.type = graph_.node(*value.node).type;
    return value;
  }
  value.info.shape = value.info.constant->shape();
  value.info.type = value.info.constant->type();
  return value;
}

NodeImporter::Value NodeImporter::Fold(const Op& op, const std::vector<const Tensor*>& constants) {
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
  Value value;
  const bool by_kernel = options_.machine != nullptr && op.HasFastKernel() && op.KernelTakes(types);
  value.info.constant = std::make_shared<const Tensor>(by_kernel ? RunOnce(op, constants, *options_.machine)
                                                                 : op.Reference(constants));
  value.info.shape = value.info.constant->shape();
  value.info.type = value.info.constant->type();
  return value;
}

void NodeImporter::Spend(double operations) {
  if (!(operations <= static_cast<double>(operations_left_))) {  // NaN neither
    throw Error(
        ErrorCode::kBadModel,
        fmt::format("computing what depends on constants only takes {:.2g} operations more, {:.2g} are "
                    "left (of {:.2g}, and {} for each element of an initializer)",
                    operations, static_cast<double>(operations_left_),
                    static_cast<double>(graph_.limits().folded_operations), kOperationsPerElement));
  }
  operations_left_ -= static_cast<int64_t>(operations);
}

void NodeImporter::Add(ModelNode node) {
  pending_.push_back(std::move(node));
  while (!pending_.empty()) {
    const ModelNode next = std::move(pending_.front());
    pending_.pop_front();
    Take(next);
  }
}

void NodeImporter::Take(const ModelNode& node) {
  const std::string name = NameFor(node);
  const bool is_function = options_.functions && options_.functions->contains(node.op_type);
  const int64_t opset = node.opset > 0 ? node.opset : options_.opset;
  std::string reason;
  if (!is_function && !node.op && FindOpImporter(node.op_type) == nullptr) {
    reason = "the operator is not supported";
  } else if (opset < kFirstFullOpset &&
             std::ranges::find(kUnchangedOperators, node.op_type) == std::end(kUnchangedOperators)) {
    reason = fmt::format("its form in opset {} is not supported", opset);
  } else if (!Reads(node, State::kUnknown)) {
    try {
      if (Reads(node, State::kLate)) return Defer(node);
      return BuildOutputs(node, name);
    } catch (const NeedsConstant&) {
      return Defer(node);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadModel && error.code() != ErrorCode::kUsage) throw;
      reason = error.what();
    }
  }
  if (!reason.empty()) AddProblem(node.op_type, name, reason);
  for (const std::string& output : node.outputs) {
    if (!output.empty()) values_[output].state = State::kUnknown;
  }
}

void NodeImporter::Defer(const ModelNode& node) {
  for (const std::string& output : node.outputs) {
    if (!output.empty()) values_[output].state = State::kLate;
  }
  late_.push_back(node);
}

void NodeImporter::ReadLate(const std::string& tensor) {
  const auto found = values_.find(tensor);
  if (found == values_.end() || found->second.state != State::kKnown) return;
  if (found->second.info.constant) {
    late_constants_[tensor] = found->second.info.constant;
  } else if (std::ranges::find(late_reads_, tensor) == late_reads_.end()) {
    late_reads_.push_back(tensor);
  }
}

void NodeImporter::AddOutput(const std::string& name) {
  Graph::NodeId node = NodeOf(name);
  if (graph_.IsOutput(node)) node = AddNamed(name, std::make_shared<ViewOp>("Identity"), {node});
  graph_.MarkOutput(node);
}

// The graph's outputs become the tensors that the tail reads, and those of the model's outputs that it has.
void NodeImporter::AddTail(const std::vector<std::string>& outputs) {
  std::unordered_set<std::string> needed(outputs.begin(), outputs.end());
  const auto reads = [](const ModelNode& node, const auto& visit) {
    std::ranges::for_each(node.inputs, visit);
    for (const auto& [name, body] : node.bodies) std::ranges::for_each(FreeNames(*body), visit);
  };
  std::vector<ModelNode> nodes;
  for (size_t i = late_.size(); i-- > 0;) {
    const auto is_needed = [&](const std::string& output) { return needed.contains(output); };
    if (std::ranges::none_of(late_[i].outputs, is_needed)) continue;
    reads(late_[i], [&](const std::string& tensor) { needed.insert(tensor); });
    nodes.push_back(std::move(late_[i]));
  }
  std::ranges::reverse(nodes);
  for (const ModelNode& node : nodes) reads(node, [&](const std::string& tensor) { ReadLate(tensor); });
  for (const std::string& output : outputs) ReadLate(output);
  for (const std::string& tensor : late_reads_) AddOutput(tensor);
  graph_.SetTail(MakeNodeTail({.name = options_.source,
                               .opset = options_.opset,
                               .limits = graph_.limits(),
                               .functions = options_.functions,
                               .inputs = late_reads_,
                               .outputs = outputs,
                               .constants = std::move(late_constants_),
                               .nodes = std::move(nodes)}));
}

Graph NodeImporter::Finish(const std::vector<std::string>& outputs) {
  CheckProblems();
  bool late = false;
  for (const std::string& output : outputs) {
    const auto found = values_.find(output);
    if (found == values_.end()) {
      throw Error(ErrorCode::kBadModel,
                  fmt::format("{}: no node computes the output \"{}\"", options_.source, output));
    }
    late = late || found->second.state == State::kLate;
  }
  if (late) {
    AddTail(outputs);
  } else {
    for (const std::string& output : outputs) AddOutput(output);
  }
  return std::move(graph_);
}

std::vector<Tensor> NodeImporter::Values(const std::vector<std::string>& names) const {
  CheckProblems();
  std::vector<Tensor> values;
  for (const std::string& name : names) {
    const auto found = values_.find(name);
    if (found == values_.end() || !found->second.info.constant) {
      throw Error(ErrorCode::kBadModel,
                  fmt::format("{}: no node computes the output \"{}\"", options_.source, name));
    }
    values.push_back(*found->second.info.constant);
  }
  return values;
}

}  // namespace tilesmith
