#include "ops/onnx/importer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <set>

#include "layouts/base/error.h"
#include "ops/base/onnx_type.h"
#include "ops/onnx/input_shape.h"
#include "ops/onnx/node_importer.h"
#include "ops/onnx/node_spec.h"
#include "ops/onnx/tensor_proto.h"

namespace tilesmith {
namespace {

constexpr int64_t kFirstOpset = 1;
constexpr int64_t kLastOpset = 24;

// Clearing would keep the memory.
void FreeData(onnx::TensorProto& tensor) {
  std::string().swap(*tensor.mutable_raw_data());
  google::protobuf::RepeatedField<float>().Swap(tensor.mutable_float_data());
}

void CheckOpset(int64_t opset, const std::string& source) {
  if (opset >= kFirstOpset && opset <= kLastOpset) return;
  throw Error(ErrorCode::kBadModel,
              opset == 0 ? fmt::format("{}: the model names no opset of the default domain", source)
                         : fmt::format("{}: opset {} is not supported ({} to {} are)", source, opset,
                                       kFirstOpset, kLastOpset));
}

// An option that matches nothing is a typing error of the user.
void CheckOptions(const onnx::GraphProto& proto, const std::string& source, const ImportOptions& options) {
  std::set<std::string> inputs, dims, initializers;
  for (const onnx::TensorProto& initializer : proto.initializer()) initializers.insert(initializer.name());
  for (const onnx::ValueInfoProto& input : proto.input()) {
    inputs.insert(input.name());
    if (MayHaveRankOne(input) && !initializers.contains(input.name())) dims.insert(input.name());
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (!dim.dim_param().empty()) dims.insert(dim.dim_param());
    }
  }
  const auto need = [&](const std::string& name, const std::set<std::string>& known, std::string_view what) {
    if (known.contains(name)) return;
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: no {} \"{}\" (known: {})", source, what, name, fmt::join(known, ", ")));
  };
  for (const auto& [name, shape] : options.input_shapes) need(name, inputs, "input");
  for (const auto& [name, value] : options.dims) need(name, dims, "symbolic dimension or input of rank 1");
  inputs.insert(initializers.begin(), initializers.end());
  for (const auto& [name, tensor] : options.constants) need(name, inputs, "input or initializer");
}

void AddConstants(onnx::GraphProto& proto, const ImportOptions& options, NodeImporter& importer) {
  for (onnx::TensorProto& initializer : *proto.mutable_initializer()) {
    const std::string& name = initializer.name();
    if (options.constants.contains(name)) continue;
    try {
      importer.AddConstant(name, std::make_shared<const Tensor>(
                                     TensorFromProto(initializer, fmt::format("initializer \"{}\"", name))));
      FreeData(initializer);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadModel) throw;
      importer.AddUnknown(name, error.what());
    }
  }
  for (const onnx::SparseTensorProto& sparse : proto.sparse_initializer()) {
    const std::string& name = sparse.values().name();
    importer.AddUnknown(name, fmt::format("initializer \"{}\": sparse tensors", name));
  }
  for (const auto& [name, tensor] : options.constants) {
    importer.AddConstant(name, std::make_shared<const Tensor>(tensor), false);
  }
}

void AddInputs(const onnx::GraphProto& proto, const std::string& source, const ImportOptions& options,
               NodeImporter& importer) {
  for (const onnx::ValueInfoProto& input : proto.input()) {
    if (importer.Knows(input.name())) continue;
    try {
      importer.AddInput(input.name(), ResolveInputShape(input, options), InputType(input));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", source, error.what()));
    }
  }
}

// The node leaves the model, so that its constants are not held twice. Null where it is not supported.
std::optional<ModelNode> TakeNode(onnx::NodeProto& proto, NodeImporter& importer) {
  try {
    ModelNode node = MakeModelNode(proto);
    proto.clear_attribute();
    return node;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadModel) throw;
    const std::string name = proto.name().empty() && proto.output_size() > 0 ? proto.output(0) : proto.name();
    importer.AddProblem(QualifiedType(proto.domain(), proto.op_type()), name, error.what());
    for (const std::string& output : proto.output()) importer.AddUnknown(output);
    return std::nullopt;
  }
}

// The types of the outputs that are not what they are computed in.
std::map<std::string, DataType> NarrowOutputs(const onnx::GraphProto& proto) {
  std::map<std::string, DataType> narrow;
  for (const onnx::ValueInfoProto& output : proto.output()) {
    const std::optional<DataType> type = TypeOfOnnx(output.type().tensor_type().elem_type());
    if (type && ComputedType(*type) != *type) narrow.emplace(output.name(), *type);
  }
  return narrow;
}

constexpr int kMaxCallDepth = 256;  // of functions that call functions

// Functions may call each other, but none may come back to itself: ONNX forbids it, and it would have no end.
class RecursionCheck {
 public:
  RecursionCheck(const ModelFunctions& functions, const std::string& source)
      : functions_(functions), source_(source) {}

  void Run() {
    for (const auto& [type, body] : functions_) Visit(type, body);
  }

 private:
  void Visit(const std::string& type, const NodeList& body) {
    const auto [entry, first] = ends_.emplace(type, false);
    if (entry->second) return;
    if (!first)
      throw Error(ErrorCode::kBadModel, fmt::format("{}: its function \"{}\" calls itself", source_, type));
    if (++depth_ > kMaxCallDepth)
      throw Error(ErrorCode::kBadModel,
                  fmt::format("{}: its functions call each other over {} deep", source_, kMaxCallDepth));
    VisitCalls(body);
    --depth_;
    ends_[type] = true;
  }
  void VisitCalls(const NodeList& body) {
    for (const ModelNode& node : body.nodes) {
      const auto called = functions_.find(node.op_type);
      if (called != functions_.end()) Visit(called->first, called->second);
      for (const auto& [name, inner] : node.bodies) VisitCalls(*inner);
    }
  }

  const ModelFunctions& functions_;
  const std::string& source_;
  int depth_ = 0;
  std::map<std::string, bool, std::less<>> ends_;  // false while its calls are looked at
};

std::shared_ptr<const ModelFunctions> FunctionsOf(const onnx::ModelProto& model, const std::string& source) {
  if (model.functions_size() == 0) return nullptr;
  auto functions = std::make_shared<ModelFunctions>();
  for (const onnx::FunctionProto& function : model.functions()) {
    functions->insert_or_assign(QualifiedType(function.domain(), function.name()), MakeNodeList(function));
  }
  RecursionCheck(*functions, source).Run();
  return functions;
}

}  // namespace

int64_t DefaultOpset(const onnx::ModelProto& model) {
  for (const onnx::OperatorSetIdProto& opset : model.opset_import()) {
    if (QualifiedType(opset.domain(), "").empty()) return opset.version();
  }
  return 0;
}

Graph ImportModel(onnx::ModelProto model, const std::string& source, const ImportOptions& options) {
  const int64_t opset = DefaultOpset(model);
  CheckOpset(opset, source);
  onnx::GraphProto& proto = *model.mutable_graph();
  NodeImporter importer(
      Graph(std::filesystem::path(source).stem().string(), options.limits),
      {.source = source,
       .opset = opset,
       .functions = FunctionsOf(model, source),
       .narrow_outputs = options.outputs.empty() ? NarrowOutputs(proto) : std::map<std::string, DataType>()});
  AddConstants(proto, options, importer);
  CheckOptions(proto, source, options);
  AddInputs(proto, source, options, importer);
  std::vector<std::string> outputs = options.outputs;
  if (outputs.empty()) {
    for (const onnx::ValueInfoProto& output : proto.output()) outputs.push_back(output.name());
  }
  for (const std::string& output : outputs) {
    importer.Reserve(output);
    importer.AddReader(output);
  }
  for (const onnx::ValueInfoProto& input : proto.input()) importer.Reserve(input.name());
  std::vector<ModelNode> nodes;
  for (onnx::NodeProto& node : *proto.mutable_node()) {
    if (std::optional<ModelNode> taken = TakeNode(node, importer)) {
      importer.AddReader(*taken);
      nodes.push_back(*std::move(taken));
    }
  }
  model.Clear();
  for (ModelNode& node : nodes) importer.Add(std::move(node));
  return importer.Finish(outputs);
}

}  // namespace tilesmith
