#include "ops/onnx/node_importer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/visible.h"
#include "layouts/transform.h"
#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/base/onnx_type.h"
#include "ops/base/op.h"
#include "ops/base/saved_op.h"
#include "ops/graph/tail.h"
#include "ops/movement/shape_arithmetic.h"
#include "ops/movement/view.h"
#include "ops/quantize/quantize.h"

namespace tilesmith {
namespace {

// A damaged file may have a reason of its own for each of thousands of tensors.
constexpr long kMostReasonsOfTensors = 8;

void DropPrefix(const std::string& prefix, std::string& reason) {
  if (reason.starts_with(prefix)) reason.erase(0, prefix.size());
}

}  // namespace

void Refusals::Add(Row row, bool same_reason) {
  const auto found = std::ranges::find_if(rows_, [&](const Row& known) {
    return known.op_type == row.op_type && (!same_reason || known.reason == row.reason);
  });
  if (found != rows_.end()) {
    ++found->count;
  } else if (row.op_type.empty() && std::ranges::count(rows_, "", &Row::op_type) >= kMostReasonsOfTensors) {
    ++hidden_;
  } else {
    row.count = 1;
    rows_.push_back(std::move(row));
  }
}

void Refusals::AddNode(const std::string& op_type, const std::string& name, std::string reason) {
  DropPrefix(fmt::format("node \"{}\" ({}): ", name, op_type), reason);
  Add({op_type, name, std::move(reason)}, false);
}

void Refusals::AddTensor(const std::string& name, std::string reason) {
  DropPrefix(fmt::format("initializer \"{}\": ", name), reason);
  Add({"", name, std::move(reason)}, true);
}

void Refusals::Throw(const std::string& source) const {
  std::vector<std::string> lines;
  lines.reserve(rows_.size());
  for (const Row& row : rows_) {
    const bool tensor = row.op_type.empty();
    const std::string kind = tensor ? "initializer" : "node";
    const std::string which = row.count == 1
                                  ? fmt::format("{} \"{}\"", kind, row.first)
                                  : fmt::format("{} {}s, the first \"{}\"", row.count, kind, row.first);
    lines.push_back(tensor ? fmt::format("{}: {}", which, row.reason)
                           : fmt::format("{} ({}): {}", row.op_type, which, row.reason));
  }
  if (hidden_ > 0) lines.push_back(fmt::format("and {} more initializers", hidden_));
  throw Error(ErrorCode::kBadModel, lines.size() == 1
                                        ? fmt::format("{}: not supported: {}", source, lines[0])
                                        : fmt::format("{}: {} things are not supported:\n  {}", source,
                                                      lines.size(), fmt::join(lines, "\n  ")));
}

namespace {

struct NodeTailParts {
  std::string name;  // for messages
  int64_t opset = 0;
  SizeLimits limits = {};
  std::shared_ptr<const ModelFunctions> functions;
  std::map<std::string, DataType> narrow_outputs = {};  // as NodeImporterOptions has them
  std::vector<std::string> inputs;                      // names for the graph's outputs
  std::vector<std::string> outputs;                     // tensors: inputs, constants, or nodes' outputs
  std::map<std::string, std::shared_ptr<const Tensor>> constants;
  std::vector<ModelNode> nodes;  // in the order in which they can be computed
};

// What outlives the importer that reads it.
std::shared_ptr<const Tensor> Borrowed(const Tensor* tensor) { return {std::shared_ptr<void>(), tensor}; }

class NodeTail : public Tail {
 public:
  explicit NodeTail(NodeTailParts parts) : parts_(std::move(parts)) {
    // What a run may spend has another measure than loading: the sizes of its tensors are limited.
    parts_.limits.folded_operations = int64_t{1} << 60;
  }

  const std::vector<std::string>& outputs() const override { return parts_.outputs; }
  size_t nodes() const override { return parts_.nodes.size(); }

  void Save(ByteWriter& writer) const override { writer.Write(parts_); }

  std::vector<Tensor> Run(std::span<const Tensor* const> values, const OpMachine* machine) const override {
    TILESMITH_CHECK(values.size() == parts_.inputs.size(), "{} values for {} inputs", values.size(),
                    parts_.inputs.size());
    NodeImporter importer(Graph(parts_.name, parts_.limits),
                          {parts_.name, parts_.opset, parts_.functions, machine, parts_.narrow_outputs});
    for (const auto& [name, value] : parts_.constants) importer.AddConstant(name, value, false);
    for (size_t i = 0; i < values.size(); ++i) {
      importer.AddConstant(parts_.inputs[i], Borrowed(values[i]), false);
    }
    for (const ModelNode& node : parts_.nodes) importer.AddReader(node);
    for (const std::string& output : parts_.outputs) importer.AddReader(output);
    for (const ModelNode& node : parts_.nodes) importer.Add(node);
    return importer.Values(parts_.outputs);
  }

 private:
  NodeTailParts parts_;
};

std::shared_ptr<const Tail> MakeNodeTail(NodeTailParts parts) {
  return std::make_shared<NodeTail>(std::move(parts));
}

// Opset 6: with broadcast=1, the second operand's axes are matched with those of the first from `axis` on;
// numpy's rule, that of opset 7, matches the last ones.
void TranslateBroadcast(NodeSpec& spec) {
  if (!spec.Has("axis")) return;
  const int64_t rank = static_cast<int64_t>(spec.inputs[0].shape.size());
  NodeInput& operand = spec.inputs[1];
  const int64_t given = spec.Int("axis", 0);
  if (given < -rank || given > rank)
    throw Error(ErrorCode::kBadModel,
                fmt::format("attribute \"axis\" is {} (allowed: {} to {})", given, -rank, rank));
  const int64_t axis = given + (given < 0 ? rank : 0);
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

// The node as importers want it. What opset 6 said with attributes that opset 7 dropped (broadcast, axis,
// is_test) is translated. Throws Error(kBadModel) with the reason when a legacy broadcast cannot be
// expressed.
NodeSpec MakeNodeSpec(const ModelNode& node, std::string name, int64_t opset, std::vector<NodeInput> inputs) {
  NodeSpec spec;
  spec.name = std::move(name);
  spec.op_type = node.op_type;
  spec.opset = opset;
  spec.attributes = node.attributes;
  spec.inputs = std::move(inputs);
  spec.input_names = node.inputs;
  spec.output_names = node.outputs;
  spec.bodies = node.bodies;
  spec.outputs = static_cast<int>(node.outputs.size());
  if (opset < 7) TranslateOpset6(spec);
  return spec;
}

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

// The name of the node that has a tensor in f32 where another has it as it is at the network's end.
std::string WideName(const std::string& tensor) { return tensor + ".f32"; }

int64_t SizeOf(const ModelNode& node) {
  int64_t size = 1 + std::ssize(node.inputs) + std::ssize(node.outputs);
  for (const auto& [name, body] : node.bodies) {
    for (const ModelNode& inner : body->nodes) size += SizeOf(inner);
  }
  return size;
}

// Calls visit(tensor) for each input, and for what bodies read of what is around them.
template <typename Visit>
void ForEachRead(const ModelNode& node, const Visit& visit) {
  std::ranges::for_each(node.inputs, visit);
  for (const auto& [name, body] : node.bodies) std::ranges::for_each(FreeNames(*body), visit);
}

// A tensor without elements. There is only one of its shape and type, so that its value is known wherever
// these are: it is a constant, and what follows from it and other constants is computed at load time. A node
// that would compute one never enters the graph.
std::shared_ptr<const Tensor> Nothing(const Shape& shape, DataType type) {
  return std::make_shared<const Tensor>(shape, Layout::Nchw(type));
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
  const DataType type = ComputedType(value->type());
  if (type != value->type())
    value = std::make_shared<const Tensor>(TransformGeneric(*value, Layout::Nchw(type)));
  Value& entry = values_[name];
  entry.info = {.shape = value->shape(), .type = value->type(), .constant = nullptr};
  entry.info.constant = std::move(value);
}

void NodeImporter::AddInput(const std::string& name, const Shape& shape, DataType type) {
  Value value;
  value.node = AddNamed(name, std::make_shared<InputOp>(shape, type), {});
  value.info.shape = shape;
  value.info.type = ComputedType(type);
  if (value.info.type != type)
    value.node = AddNamed(WideName(name), std::make_shared<CastOp>(value.info.type), {*value.node});
  if (ElementCount(shape) == 0) value.info.constant = Nothing(shape, value.info.type);
  values_[name] = std::move(value);
}

void NodeImporter::AddReader(const ModelNode& node) {
  ForEachRead(node, [&](const std::string& tensor) { ++read_[tensor]; });
}

// Behind the node, unless it is left to the tail.
void NodeImporter::LetGo(const ModelNode& node) {
  ForEachRead(node, [&](const std::string& tensor) {
    const auto value = values_.find(tensor);
    if (--read_[tensor] > 0 || value == values_.end()) return;
    value->second.info.constant = nullptr;
    value->second.info.stored = nullptr;
  });
}

Graph::NodeId NodeImporter::AddNamed(const std::string& name, OpPtr op,
                                     const std::vector<Graph::NodeId>& inputs) {
  return graph_.Add(VisibleLine(name), std::move(op), inputs);  // as terminals, JSON and Python can take it
}

std::string NodeImporter::NameFor(const ModelNode& node) const {
  std::string output = node.outputs.empty() ? "" : node.outputs[0];
  const bool is_end = reserved_.contains(output) && !options_.narrow_outputs.contains(output);
  return is_end || node.name.empty() || reserved_.contains(node.name) ? NodeName(output) : node.name;
}

// The name of the node that computes a tensor, where it has none of its own.
std::string NodeImporter::NodeName(const std::string& tensor) const {
  return options_.narrow_outputs.contains(tensor) ? WideName(tensor) : tensor;
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
  if (!value.node)
    value.node = AddNamed(NodeName(tensor), std::make_shared<ConstantOp>(value.info.constant), {});
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
    NodeSpec spec = SpecOf(node, i == 0 ? name : NodeName(output), i);
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
  for (const int index : built.data_inputs) {
    if (!spec.HasInput(index)) throw Error(ErrorCode::kBadModel, fmt::format("input {} is missing", index));
  }
  Value value;
  if (const auto* constant = dynamic_cast<const ConstantOp*>(built.op.get())) {
    value.info.constant = constant->value();
    value.info.narrow = spec.Int(NarrowAttribute("value"), 0);
    if (spec.op_type == "Constant" && !written) {
      operations_left_ += kOperationsPerElement * value.info.constant->size();
    } else {
      Spend(static_cast<double>(value.info.constant->size()));
    }
  } else if (std::shared_ptr<const Tensor> folded = Fold(spec, built)) {
    value.info.constant = std::move(folded);
    const auto* dequantize = dynamic_cast<const DequantizeLinearOp*>(built.op.get());
    if (built.op->IsView()) value.info.narrow = spec.inputs[built.data_inputs[0]].narrow;
    if (dequantize != nullptr && dequantize->is_constant() && dequantize->quantization().block == 0) {
      value.info.stored =
          std::make_shared<const QuantizedTensor>(spec.inputs[0].constant, dequantize->quantization());
    }
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

std::shared_ptr<const Tensor> NodeImporter::Fold(const NodeSpec& spec, const BuiltOp& built) {
  const Op& op = *built.op;
  std::vector<Shape> shapes;
  std::vector<DataType> types;
  std::vector<TensorPtr> constants;
  double operations = 0;
  for (const int index : built.data_inputs) {
    const NodeInput& input = spec.inputs[index];
    shapes.push_back(input.shape);
    types.push_back(input.type);
    if (!input.constant) continue;
    constants.push_back(input.constant);
    operations += static_cast<double>(input.constant->size());
  }
  const DataType type = op.OutputType(types);
  const Shape shape = op.InferShape(shapes);
  CheckShape(shape, graph_.limits());
  if (ElementCount(shape) == 0) return Nothing(shape, type);
  if (constants.size() < shapes.size()) return nullptr;
  Spend(operations + static_cast<double>(ElementCount(shape)) + op.Flops(shapes));
  const bool by_kernel = options_.machine != nullptr && op.HasFastKernel() && op.KernelTakes(types);
  return DerivedBy(built.op, constants, [&](std::span<const Tensor* const> tensors) {
    return by_kernel ? RunOnce(op, tensors, *options_.machine) : op.Reference(tensors);
  });
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
      BuildOutputs(node, name);
      return LetGo(node);
    } catch (const NeedsConstant&) {
      return Defer(node);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadModel && error.code() != ErrorCode::kUsage) throw;
      reason = error.what();
    }
  }
  if (!reason.empty()) problems_.AddNode(node.op_type, name, reason);
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
  std::vector<ModelNode> nodes;
  for (size_t i = late_.size(); i-- > 0;) {
    const auto is_needed = [&](const std::string& output) { return needed.contains(output); };
    if (std::ranges::none_of(late_[i].outputs, is_needed)) continue;
    ForEachRead(late_[i], [&](const std::string& tensor) { needed.insert(tensor); });
    nodes.push_back(std::move(late_[i]));
  }
  std::ranges::reverse(nodes);
  for (const ModelNode& node : nodes) ForEachRead(node, [&](const std::string& tensor) { ReadLate(tensor); });
  for (const std::string& output : outputs) ReadLate(output);
  for (const std::string& tensor : late_reads_) AddOutput(tensor);
  graph_.SetTail(MakeNodeTail({.name = options_.source,
                               .opset = options_.opset,
                               .limits = graph_.limits(),
                               .functions = options_.functions,
                               .narrow_outputs = options_.narrow_outputs,
                               .inputs = late_reads_,
                               .outputs = outputs,
                               .constants = std::move(late_constants_),
                               .nodes = std::move(nodes)}));
}

// What makes the model's output of what is computed; null where they are the same.
OpPtr NodeImporter::NarrowingOf(const std::string& output) const {
  const auto narrow = options_.narrow_outputs.find(output);
  const Value& value = values_.at(output);
  if (narrow == options_.narrow_outputs.end() || value.info.type != DataType::kF32) return nullptr;
  return std::make_shared<CastOp>(narrow->second);
}

Graph NodeImporter::Finish(const std::vector<std::string>& outputs) {
  if (!problems_.empty()) problems_.Throw(options_.source);
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
    for (const std::string& output : outputs) {
      if (const OpPtr narrow = NarrowingOf(output))
        values_.at(output).node = AddNamed(output, narrow, {NodeOf(output)});
      AddOutput(output);
    }
  }
  return std::move(graph_);
}

std::vector<Tensor> NodeImporter::Values(const std::vector<std::string>& names) const {
  if (!problems_.empty()) problems_.Throw(options_.source);
  std::vector<Tensor> values;
  for (const std::string& name : names) {
    const auto found = values_.find(name);
    if (found == values_.end() || !found->second.info.constant) {
      throw Error(ErrorCode::kBadModel,
                  fmt::format("{}: no node computes the output \"{}\"", options_.source, name));
    }
    const OpPtr narrow = NarrowingOf(name);
    const Tensor& value = *found->second.info.constant;
    const Tensor* const wide[] = {&value};
    values.push_back(narrow ? narrow->Reference(wide) : value);
  }
  return values;
}

void Put(ByteWriter& writer, const TailPtr& tail) {
  writer.Write(tail != nullptr);
  if (tail) tail->Save(writer);
}

void Get(ByteReader& reader, TailPtr& tail) {
  tail = reader.Read<bool>() ? MakeNodeTail(reader.Read<NodeTailParts>()) : nullptr;
}

}  // namespace tilesmith
