#include "ops/onnx/importer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>

#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "ops/base/onnx_type.h"
#include "ops/onnx/node_importer.h"
#include "ops/onnx/node_spec.h"

namespace tilesmith {
namespace {

// Names the open sizes of inputs, and proposes usual ones for all of them.
class OpenSizes {
 public:
  // Precondition: LeavesSizesOpen(declared).
  void Add(const onnx::ValueInfoProto& input, const Shape& declared);
  bool empty() const { return inputs_.empty(); }
  std::string Text() const;

 private:
  std::vector<std::string> inputs_;        // "x" is [N, 3, ?, ?]
  std::vector<std::string> usual_;         // x=1x3x224x224
  std::vector<std::string> alternatives_;  // of images
};

using Dimension = onnx::TensorShapeProto_Dimension;

[[noreturn]] void Fail(const onnx::ValueInfoProto& input, const std::string& reason) {
  throw Error(ErrorCode::kBadModel, fmt::format("input \"{}\": {}", input.name(), reason));
}

// None where neither file nor options say.
std::optional<int64_t> DeclaredSize(const onnx::ValueInfoProto& input, int index,
                                    const ImportOptions& options) {
  const Dimension& dim = input.type().tensor_type().shape().dim(index);
  if (index == 0 && options.batch) return options.batch;
  if (dim.has_dim_value() && dim.dim_value() >= 0) return dim.dim_value();
  if (const auto given = options.dims.find(dim.dim_param()); given != options.dims.end())
    return given->second;
  for (const std::string& name : {input.name(), std::string()}) {
    const auto open = options.open_shapes.find(name);
    if (open != options.open_shapes.end() && index < std::ssize(open->second)) return open->second[index];
  }
  return std::nullopt;
}

// Height and width that models for a purpose are mostly used with.
struct ImageSize {
  int64_t height, width;
  std::string_view purpose;
};
constexpr ImageSize kImageSizes[] = {
    {224, 224, "classifiers"}, {640, 640, "detectors"}, {48, 320, "readers of lines of text"}};

bool Fits(const Shape& declared, const ImageSize& size) {
  return (declared[2] < 0 || declared[2] == size.height) && (declared[3] < 0 || declared[3] == size.width);
}

bool IsImage(const Shape& declared) {
  return declared.size() == 4 && (declared[1] < 0 || declared[1] == 1 || declared[1] == 3);
}

// The known sizes, and for the others what is usual.
Shape UsualShape(const Shape& declared) {
  constexpr int64_t kSequence = 128;
  Shape usual = declared;
  const ImageSize* size = &kImageSizes[0];
  if (IsImage(declared)) {
    const auto fitting =
        std::ranges::find_if(kImageSizes, [&](const ImageSize& s) { return Fits(declared, s); });
    if (fitting != std::end(kImageSizes)) size = fitting;
    // Of one side the other, unless it is usual.
    const int64_t side = std::max(declared[2], declared[3]);
    const bool one = side > 0 && fitting == std::end(kImageSizes);
    usual = {1, 3, one ? side : size->height, one ? side : size->width};
  } else {
    for (size_t i = 0; i < usual.size(); ++i)
      usual[i] = i == 0 ? 1 : usual.size() <= 3 ? kSequence : size->width;
  }
  for (size_t i = 0; i < usual.size(); ++i)
    if (declared[i] >= 0) usual[i] = declared[i];
  return usual;
}

// Whether one size may be its whole shape.
bool MayHaveRankOne(const onnx::ValueInfoProto& input) {
  const onnx::TypeProto_Tensor& type = input.type().tensor_type();
  return !type.has_shape() || type.shape().dim_size() == 1;
}

// -1 for what neither file nor options say. Throws Error(kBadModel) naming the input where nobody says its
// rank, or the rank given differs from the file's.
Shape DeclaredShape(const onnx::ValueInfoProto& input, const ImportOptions& options) {
  if (!input.type().has_tensor_type()) Fail(input, "it is not a tensor");
  const onnx::TypeProto_Tensor& type = input.type().tensor_type();
  const int rank = type.shape().dim_size();
  Shape shape;
  std::vector<size_t> open;
  if (const auto given = options.input_shapes.find(input.name()); given != options.input_shapes.end()) {
    shape = given->second;
    if (type.has_shape() && static_cast<int>(shape.size()) != rank) {
      Fail(input, fmt::format("the shape given, {}, has {} dimensions, the model's has {}",
                              ShapeToString(shape), shape.size(), rank));
    }
  } else if (const auto size = options.dims.find(input.name());
             size != options.dims.end() && MayHaveRankOne(input)) {
    shape = {size->second};
  } else {
    if (!type.has_shape()) {
      Fail(input, fmt::format("the model gives no shape; add {} {}=1x3x224x224", settings::kInputShapes,
                              input.name()));
    }
    for (int i = 0; i < rank; ++i) {
      const std::optional<int64_t> size = DeclaredSize(input, i, options);
      if (!size) open.push_back(shape.size());
      shape.push_back(size.value_or(0));
    }
  }
  for (const int64_t size : shape) {
    if (size < 0) Fail(input, fmt::format("its shape {} must not be negative", ShapeToString(shape)));
  }
  for (const size_t index : open) shape[index] = -1;
  return shape;
}

// Whether more is open than a batch, which is 1 where nobody gives it.
bool LeavesSizesOpen(const Shape& declared) {
  return std::ranges::find(declared.begin() + !declared.empty(), declared.end(), -1) != declared.end();
}

void OpenSizes::Add(const onnx::ValueInfoProto& input, const Shape& declared) {
  std::vector<std::string> sizes;
  for (size_t i = 0; i < declared.size(); ++i) {
    const std::string& name = input.type().tensor_type().shape().dim(static_cast<int>(i)).dim_param();
    sizes.push_back(declared[i] >= 0 ? std::to_string(declared[i]) : name.empty() ? "?" : name);
  }
  inputs_.push_back(fmt::format("\"{}\" is [{}]", input.name(), fmt::join(sizes, ", ")));
  const Shape usual = UsualShape(declared);
  usual_.push_back(fmt::format("{} {}={}", settings::kInputShapes, input.name(), ShapeToString(usual)));
  if (!IsImage(declared)) return;
  for (const ImageSize& size : kImageSizes) {
    if (Fits(declared, size))
      alternatives_.push_back(fmt::format("{}x{} of {}", size.height, size.width, size.purpose));
  }
}

std::string OpenSizes::Text() const {
  std::set<std::string> once;
  std::vector<std::string> usual;
  for (const std::string& text : alternatives_)
    if (once.insert(text).second) usual.push_back(text);
  return fmt::format(
      "sizes of inputs are left open: {}; give them, such as {}{}", fmt::join(inputs_, ", "),
      fmt::join(usual_, " "),
      usual.empty() ? ""
                    : fmt::format(" (usual, which need not be this model's: {})", fmt::join(usual, ", ")));
}

// Throws Error(kBadModel) naming the input when its elements have no type of ours.
DataType InputType(const onnx::ValueInfoProto& input) {
  const int32_t number = input.type().tensor_type().elem_type();
  const std::optional<DataType> type = TypeOfOnnx(number);
  if (!type) {
    Fail(input, fmt::format("its elements are {}, which is not supported", OnnxTypeName(number)));
  }
  return *type;
}

constexpr int64_t kFirstOpset = 1;
constexpr int64_t kLastOpset = 25;

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

}  // namespace

struct OnnxFile::Content {
  struct NamedTensor {
    std::string name;
    std::shared_ptr<const Tensor> value;
    int64_t narrow = 0;  // ONNX's number of the type that it had before it was unpacked
  };

  std::string source;
  int64_t opset = 0;
  std::shared_ptr<const ModelFunctions> functions;
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> inputs;  // among them, in old files, constants
  std::vector<std::string> outputs;
  std::map<std::string, DataType> narrow_outputs;  // as NodeImporterOptions has them
  std::vector<NamedTensor> constants;
  std::vector<ModelNode> nodes;
  std::vector<std::string> unknown;  // tensors that are among the refusals, or computed by such nodes
  Refusals refusals;
};

namespace {

using Content = OnnxFile::Content;

// An option that matches nothing is a typing error of the user.
void CheckOptions(const Content& model, const ImportOptions& options) {
  std::set<std::string> inputs, dims, initializers;
  for (const Content::NamedTensor& constant : model.constants) initializers.insert(constant.name);
  initializers.insert(model.unknown.begin(), model.unknown.end());
  for (const onnx::ValueInfoProto& input : model.inputs) {
    inputs.insert(input.name());
    if (MayHaveRankOne(input) && !initializers.contains(input.name())) dims.insert(input.name());
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (!dim.dim_param().empty()) dims.insert(dim.dim_param());
    }
  }
  const auto need = [&](const std::string& name, const std::set<std::string>& known, std::string_view what) {
    if (known.contains(name)) return;
    throw Error(ErrorCode::kUsage, fmt::format("{}: no {} \"{}\" (known: {})", model.source, what, name,
                                               fmt::join(known, ", ")));
  };
  for (const auto& [name, shape] : options.input_shapes) need(name, inputs, "input");
  for (const auto& [name, value] : options.dims) need(name, dims, "symbolic dimension or input of rank 1");
  inputs.insert(initializers.begin(), initializers.end());
  for (const auto& [name, tensor] : options.constants) need(name, inputs, "input or initializer");
}

void TakeConstants(ParsedModel& model, TensorReader& reader, Content& content) {
  onnx::GraphProto& proto = *model.proto.mutable_graph();
  for (int i = 0; i < proto.initializer_size(); ++i) {
    onnx::TensorProto& initializer = *proto.mutable_initializer(i);
    const std::string& name = initializer.name();
    const PartPlace data = static_cast<size_t>(i) < model.data.size() ? model.data[i] : PartPlace();
    try {
      const NarrowType* const narrow = NarrowTypeOf(initializer.data_type());
      content.constants.push_back(
          {name,
           std::make_shared<const Tensor>(reader.ReadApart(initializer, model.file.get(), data,
                                                           fmt::format("initializer \"{}\"", name))),
           narrow == nullptr ? 0 : narrow->number});
      FreeData(initializer);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadModel) throw;
      content.refusals.AddTensor(name, error.what());
      content.unknown.push_back(name);
    }
  }
  for (const onnx::SparseTensorProto& sparse : proto.sparse_initializer()) {
    content.refusals.AddTensor(sparse.values().name(), "sparse tensors");
    content.unknown.push_back(sparse.values().name());
  }
}

// Nodes leave the model one by one, so that their constants are not held twice.
void TakeNodes(onnx::GraphProto& proto, TensorReader& reader, Content& content) {
  content.nodes.reserve(static_cast<size_t>(proto.node_size()));
  for (onnx::NodeProto& node : *proto.mutable_node()) {
    try {
      content.nodes.push_back(MakeModelNode(node, reader));
      node.clear_attribute();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadModel) throw;
      const std::string name = node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
      content.refusals.AddNode(QualifiedType(node.domain(), node.op_type()), name, error.what());
      content.unknown.insert(content.unknown.end(), node.output().begin(), node.output().end());
    }
  }
}

// Calls body with the shape, as DeclaredShape gives it, of each input that `knows(name)` is no constant.
template <typename Knows, typename Body>
void ForEachInput(const Content& model, const ImportOptions& options, const Knows& knows, const Body& body) {
  for (const onnx::ValueInfoProto& input : model.inputs) {
    if (knows(input.name())) continue;
    try {
      body(input, DeclaredShape(input, options));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", model.source, error.what()));
    }
  }
}

void AddInputs(const Content& model, const ImportOptions& options, NodeImporter& importer) {
  OpenSizes open;
  const auto knows = [&](const std::string& name) { return importer.Knows(name); };
  ForEachInput(model, options, knows, [&](const onnx::ValueInfoProto& input, Shape shape) {
    if (LeavesSizesOpen(shape)) return open.Add(input, shape);
    if (!shape.empty() && shape[0] < 0) shape[0] = 1;
    importer.AddInput(input.name(), shape, InputType(input));
  });
  if (!open.empty()) throw Error(ErrorCode::kBadModel, fmt::format("{}: {}", model.source, open.Text()));
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

std::shared_ptr<const ModelFunctions> FunctionsOf(const onnx::ModelProto& model, const std::string& source,
                                                  TensorReader& reader) {
  if (model.functions_size() == 0) return nullptr;
  auto functions = std::make_shared<ModelFunctions>();
  for (const onnx::FunctionProto& function : model.functions()) {
    functions->insert_or_assign(QualifiedType(function.domain(), function.name()),
                                MakeNodeList(function, reader));
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

OnnxFile TakeModel(ParsedModel model, const std::string& source, TensorReader reader) {
  auto content = std::make_shared<Content>();
  content->source = source;
  content->opset = DefaultOpset(model.proto);
  CheckOpset(content->opset, source);
  content->functions = FunctionsOf(model.proto, source, reader);
  onnx::GraphProto& graph = *model.proto.mutable_graph();
  content->inputs.Swap(graph.mutable_input());
  for (const onnx::ValueInfoProto& output : graph.output()) content->outputs.push_back(output.name());
  content->narrow_outputs = NarrowOutputs(graph);
  TakeConstants(model, reader, *content);
  TakeNodes(graph, reader, *content);
  return OnnxFile(std::move(content));
}

namespace {

// Calls `visit(tensor, name)` for every tensor of nodes, and of their bodies' initializers.
template <typename Visit>
void ForEachTensor(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, const Visit& visit) {
  for (onnx::NodeProto& node : nodes) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) visit(*attribute.mutable_t(), node.name());
      if (!attribute.has_g()) continue;
      for (onnx::TensorProto& tensor : *attribute.mutable_g()->mutable_initializer())
        visit(tensor, tensor.name());
      ForEachTensor(*attribute.mutable_g()->mutable_node(), visit);
    }
  }
}

template <typename Visit>
void ForEachTensor(onnx::ModelProto& model, const Visit& visit) {
  onnx::GraphProto& graph = *model.mutable_graph();
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) visit(tensor, tensor.name());
  ForEachTensor(*graph.mutable_node(), visit);
  for (onnx::FunctionProto& function : *model.mutable_functions())
    ForEachTensor(*function.mutable_node(), visit);
}

}  // namespace

std::set<std::string> PartsOf(onnx::ModelProto& model) {
  std::set<std::string> locations;
  ForEachTensor(model, [&](const onnx::TensorProto& tensor, const std::string&) {
    if (IsExternal(tensor)) locations.insert(LocationOf(tensor));
  });
  return locations;
}

void EmbedParts(onnx::ModelProto& model, const std::string& source, TensorReader reader) {
  Refusals refusals;
  ForEachTensor(model, [&](onnx::TensorProto& tensor, const std::string& name) {
    try {
      reader.Embed(tensor, fmt::format("initializer \"{}\"", name));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadModel) throw;
      refusals.AddTensor(name, error.what());
    }
  });
  if (!refusals.empty()) refusals.Throw(source);
}

namespace {

Graph ImportContent(Content model, const ImportOptions& options) {
  CheckOptions(model, options);
  NodeImporter importer(
      Graph(std::filesystem::path(model.source).stem().string(), options.limits),
      {.source = model.source,
       .opset = model.opset,
       .functions = model.functions,
       .narrow_outputs = options.outputs.empty() ? model.narrow_outputs : std::map<std::string, DataType>()});
  importer.problems() = std::move(model.refusals);
  for (Content::NamedTensor& constant : model.constants) {
    if (options.constants.contains(constant.name)) continue;
    importer.AddConstant(constant.name, std::move(constant.value));
    if (constant.narrow != 0) importer.SetNarrow(constant.name, constant.narrow);
  }
  for (const std::string& name : model.unknown) importer.AddUnknown(name);
  for (const auto& [name, tensor] : options.constants) {
    importer.AddConstant(name, std::make_shared<const Tensor>(tensor), false);
  }
  AddInputs(model, options, importer);
  const std::vector<std::string>& outputs = options.outputs.empty() ? model.outputs : options.outputs;
  for (const std::string& output : outputs) {
    importer.Reserve(output);
    importer.AddReader(output);
  }
  for (const onnx::ValueInfoProto& input : model.inputs) importer.Reserve(input.name());
  for (const ModelNode& node : model.nodes) importer.AddReader(node);
  for (ModelNode& node : model.nodes) importer.Add(std::move(node));
  return importer.Finish(outputs);
}

}  // namespace

ModelEnds OnnxFile::Ends(const ImportOptions& options) const {
  std::set<std::string> constants(content_->unknown.begin(), content_->unknown.end());
  for (const Content::NamedTensor& constant : content_->constants) constants.insert(constant.name);
  for (const auto& [name, value] : options.constants) constants.insert(name);
  ModelEnds ends;
  const auto knows = [&](const std::string& name) { return constants.contains(name); };
  ForEachInput(*content_, options, knows, [&](const onnx::ValueInfoProto& input, Shape shape) {
    ends.sizes_open = ends.sizes_open || LeavesSizesOpen(shape);
    ends.inputs.push_back({input.name(), std::move(shape), InputType(input)});
  });
  ends.outputs = content_->outputs;
  return ends;
}

Graph OnnxFile::Import(const ImportOptions& options) const& { return ImportContent(*content_, options); }

Graph OnnxFile::Import(const ImportOptions& options) && {
  if (content_.use_count() > 1) return ImportContent(*content_, options);
  return ImportContent(std::move(*content_), options);
}

}  // namespace tilesmith
