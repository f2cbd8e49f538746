#include "tools/ort/plugin/host_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

HostValue ReadValue(const OrtApi& api, const OrtValueInfo* info) {
  HostValue value;
  if (info == nullptr) return value;
  const char* name = nullptr;
  CheckOrt(api, api.GetValueInfoName(info, &name));
  value.name = name;
  const OrtTypeInfo* type = nullptr;
  CheckOrt(api, api.GetValueInfoTypeInfo(info, &type));
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  if (type != nullptr) CheckOrt(api, api.CastTypeInfoToTensorInfo(type, &tensor));
  if (tensor != nullptr) value.type = TypeOfTensor(api, tensor);
  bool is_constant = false;
  CheckOrt(api, api.ValueInfo_IsConstantInitializer(info, &is_constant));
  if (is_constant) {
    CheckOrt(api, api.ValueInfo_GetInitializerValue(info, &value.constant));
    if (value.constant != nullptr) value.type = TypeOfValue(api, value.constant);
  }
  return value;
}

template <typename Handle, typename Count, typename Get>
std::vector<HostValue> ReadValues(const OrtApi& api, const Handle* of, const Count& count, const Get& get) {
  size_t size = 0;
  CheckOrt(api, count(of, &size));
  std::vector<const OrtValueInfo*> infos(size);
  CheckOrt(api, get(of, infos.data(), size));
  std::vector<HostValue> values;
  values.reserve(size);
  for (const OrtValueInfo* info : infos) values.push_back(ReadValue(api, info));
  return values;
}

std::span<const std::byte> BytesOf(const OrtApi& api, const OrtValue* value) {
  const void* data = nullptr;
  size_t size = 0;
  CheckOrt(api, api.GetTensorData(value, &data));
  CheckOrt(api, api.GetTensorSizeInBytes(value, &size));
  return {static_cast<const std::byte*>(data), size};
}

// The elements of an attribute of `type`, as many as it has.
template <typename Elements>
Elements ReadElements(const OrtApi& api, const OrtOpAttr* attribute, OrtOpAttrType type) {
  size_t bytes = 0;
  if (OrtStatus* too_small = api.ReadOpAttr(attribute, type, nullptr, 0, &bytes))
    api.ReleaseStatus(too_small);
  Elements elements(bytes / sizeof(typename Elements::value_type), {});
  if (bytes > 0) CheckOrt(api, api.ReadOpAttr(attribute, type, elements.data(), bytes, &bytes));
  return elements;
}

template <typename Element>
Element ReadElement(const OrtApi& api, const OrtOpAttr* attribute, OrtOpAttrType type) {
  Element element{};
  size_t bytes = 0;
  CheckOrt(api, api.ReadOpAttr(attribute, type, &element, sizeof(element), &bytes));
  return element;
}

// Null where there is none.
const OrtOpAttr* FindAttribute(const OrtApi& api, const OrtNode* node, const char* name) {
  const OrtOpAttr* attribute = nullptr;
  if (OrtStatus* not_found = api.Node_GetAttributeByName(node, name, &attribute))
    api.ReleaseStatus(not_found);
  return attribute;
}

Tensor ReadTensor(const OrtApi& api, const OrtOpAttr* attribute) {
  OrtValue* value = nullptr;
  CheckOrt(api, api.OpAttr_GetTensorAttributeAsOrtValue(attribute, &value));
  const std::unique_ptr<OrtValue, void (*)(OrtValue*)> owner(value, api.ReleaseValue);
  const HostTensorType type = TypeOfValue(api, value);
  const std::span<const std::byte> bytes = BytesOf(api, value);
  const Shape shape(type.shape->begin(), type.shape->end());
  const bool is_float = type.element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  if (!is_float && type.element_type != ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64)
    throw Error(ErrorCode::kBadModel, "a tensor of neither float nor int64");
  Tensor tensor(shape, Layout::Nchw(is_float ? DataType::kF32 : DataType::kI64));
  std::ranges::copy(bytes, static_cast<std::byte*>(tensor.raw()));
  return tensor;
}

Attribute ReadAttribute(const OrtApi& api, const OrtOpAttr* attribute) {
  OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
  CheckOrt(api, api.OpAttr_GetType(attribute, &type));
  switch (type) {
    case ORT_OP_ATTR_INT:
      return ReadElement<int64_t>(api, attribute, type);
    case ORT_OP_ATTR_FLOAT:
      return ReadElement<float>(api, attribute, type);
    case ORT_OP_ATTR_INTS:
      return ReadElements<std::vector<int64_t>>(api, attribute, type);
    case ORT_OP_ATTR_FLOATS:
      return ReadElements<std::vector<float>>(api, attribute, type);
    case ORT_OP_ATTR_STRING:
      return ReadElements<std::string>(api, attribute, type);
    case ORT_OP_ATTR_TENSOR:
      return ReadTensor(api, attribute);
    default:
      throw Error(ErrorCode::kBadModel, "a graph, or a list of strings");
  }
}

void ReadAttributes(const OrtApi& api, HostGraphNode& node) {
  size_t size = 0;
  CheckOrt(api, api.Node_GetNumAttributes(node.handle, &size));
  std::vector<const OrtOpAttr*> attributes(size);
  CheckOrt(api, api.Node_GetAttributes(node.handle, attributes.data(), size));
  for (const OrtOpAttr* attribute : attributes) {
    const char* name = nullptr;
    CheckOrt(api, api.OpAttr_GetName(attribute, &name));
    try {
      node.node.attributes.insert_or_assign(name, ReadAttribute(api, attribute));
    } catch (const Error& error) {
      node.unreadable = fmt::format("its attribute {} cannot be read: {}", name, error.what());
    }
  }
}

HostGraphNode ReadNode(const OrtApi& api, const OrtNode* handle) {
  HostGraphNode node;
  node.handle = handle;
  const char* text = nullptr;
  CheckOrt(api, api.Node_GetName(handle, &text));
  node.node.name = text;
  CheckOrt(api, api.Node_GetOperatorType(handle, &text));
  node.node.op_type = text;
  CheckOrt(api, api.Node_GetDomain(handle, &text));
  node.node.domain = text;
  node.inputs = InputsOf(api, handle);
  node.outputs = OutputsOf(api, handle);
  node.node.inputs = NamesOf(node.inputs);
  node.node.outputs = NamesOf(node.outputs);
  size_t subgraphs = 0;
  CheckOrt(api, api.Node_GetNumSubgraphs(handle, &subgraphs));
  if (subgraphs > 0) {
    node.read_by_subgraphs =
        NamesOf(ReadValues(api, handle, api.Node_GetNumImplicitInputs, api.Node_GetImplicitInputs));
    node.unreadable = "it holds a graph of its own";
  } else if (node.node.op_type == kContextOp && node.node.domain == kContextDomain) {
    node.is_context = TextAttribute(api, handle, "source") == kProviderName;
    node.unreadable = "another provider has compiled it";
  } else {
    ReadAttributes(api, node);
  }
  return node;
}

// The nodes that read each tensor; graph.nodes.size() stands for the caller, who reads the outputs.
using Readers = std::map<std::string, std::vector<size_t>>;
Readers ReadersOf(const HostGraph& graph) {
  Readers readers;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const auto* names : {&graph.nodes[i].node.inputs, &graph.nodes[i].read_by_subgraphs})
      for (const std::string& name : *names) readers[name].push_back(i);
  for (const std::string& output : graph.outputs) readers[output].push_back(graph.nodes.size());
  return readers;
}

std::string DescribeTypeProblem(const HostValue& value) {
  if (value.type.element_type != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)
    return fmt::format("\"{}\" is not a float tensor", value.name);
  if (value.type.shape) return "";
  return fmt::format("\"{}\" has an open dimension{}", value.name,
                     value.type.open_dimension.empty() ? "" : " " + value.type.open_dimension);
}

HostRegion RegionOf(const HostGraph& graph, const Readers& readers, std::vector<size_t> members) {
  HostRegion region{std::move(members), {}, {}};
  const auto read_outside = [&](const std::string& tensor) {
    const auto found = readers.find(tensor);
    return found != readers.end() && std::ranges::any_of(found->second, [&](size_t reader) {
             return !std::ranges::binary_search(region.members, reader);
           });
  };
  std::set<std::string> known;
  for (const size_t member : region.members) {
    for (const HostValue& input : graph.nodes[member].inputs) {
      if (input.name.empty() || input.constant != nullptr || !known.insert(input.name).second) continue;
      region.inputs.push_back(input);
    }
    for (const HostValue& output : graph.nodes[member].outputs) {
      known.insert(output.name);
      if (!output.name.empty() && read_outside(output.name)) region.outputs.push_back(output.name);
    }
  }
  return region;
}

// A model of an open batch is kept as a file until its first run; less than 2 GiB, with some room for the
// nodes.
constexpr size_t kMaxFileBytes = (size_t{2} << 30) - (size_t{16} << 20);

size_t WeightBytes(const HostModel& model) {
  size_t bytes = 0;
  for (const HostConstant& constant : model.constants) bytes += constant.bytes.size();
  return bytes;
}

// Why tilesmith cannot compute the members, "" when it can.
std::string WhyNot(const OrtApi& api, const HostGraph& graph, const HostRegion& region,
                   const ImportOptions& options) {
  for (const size_t member : region.members)
    if (!graph.nodes[member].unreadable.empty()) return graph.nodes[member].unreadable;
  if (region.inputs.empty() || region.outputs.empty()) return "it computes nothing from inputs";
  for (const HostValue& input : region.inputs)
    if (std::string problem = DescribeTypeProblem(input); !problem.empty()) return problem;
  for (const size_t member : region.members) {
    for (const HostValue& output : graph.nodes[member].outputs) {
      if (std::ranges::find(region.outputs, output.name) == region.outputs.end()) continue;
      if (std::string problem = DescribeTypeProblem(output); !problem.empty()) return problem;
    }
  }
  try {
    const HostModel model = ModelOf(api, graph, "onnxruntime", region.members, region.inputs, region.outputs);
    ImportHostModel(model, options);
    if (HasOpenBatch(model)) {
      ImportHostModel(WithBatch(model, 2), options);
      if (WeightBytes(model) >= kMaxFileBytes) return "an open batch, and weights of 2 GiB or more";
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadModel && error.code() != ErrorCode::kUsage) throw;
    return error.what();
  }
  return "";
}

bool IsWorthwhile(const std::string& op_type) {
  return op_type == "Conv" || op_type == "ConvTranspose" || op_type == "Gemm" || op_type == "MatMul";
}

}  // namespace

std::vector<std::string> NamesOf(const std::vector<HostValue>& values) {
  std::vector<std::string> names;
  names.reserve(values.size());
  for (const HostValue& value : values) names.push_back(value.name);
  return names;
}

std::vector<HostValue> InputsOf(const OrtApi& api, const OrtNode* node) {
  return ReadValues(api, node, api.Node_GetNumInputs, api.Node_GetInputs);
}

std::vector<HostValue> OutputsOf(const OrtApi& api, const OrtNode* node) {
  return ReadValues(api, node, api.Node_GetNumOutputs, api.Node_GetOutputs);
}

std::string TextAttribute(const OrtApi& api, const OrtNode* node, const char* name) {
  const OrtOpAttr* attribute = FindAttribute(api, node, name);
  return attribute ? ReadElements<std::string>(api, attribute, ORT_OP_ATTR_STRING) : "";
}

int64_t NumberAttribute(const OrtApi& api, const OrtNode* node, const char* name, int64_t otherwise) {
  const OrtOpAttr* attribute = FindAttribute(api, node, name);
  return attribute ? ReadElement<int64_t>(api, attribute, ORT_OP_ATTR_INT) : otherwise;
}

HostGraph ReadGraph(const OrtApi& api, const OrtGraph* graph) {
  HostGraph result;
  size_t size = 0;
  CheckOrt(api, api.Graph_GetNumOperatorSets(graph, &size));
  std::vector<const char*> domains(size);
  std::vector<int64_t> versions(size);
  CheckOrt(api, api.Graph_GetOperatorSets(graph, domains.data(), versions.data(), size));
  for (size_t i = 0; i < size; ++i)
    if (const std::string domain = domains[i]; domain.empty() || domain == "ai.onnx")
      result.opset = versions[i];
  const OrtNode* parent = nullptr;
  CheckOrt(api, api.Graph_GetParentNode(graph, &parent));
  result.is_subgraph = parent != nullptr;
  CheckOrt(api, api.Graph_GetNumNodes(graph, &size));
  std::vector<const OrtNode*> nodes(size);
  CheckOrt(api, api.Graph_GetNodes(graph, nodes.data(), size));
  for (const OrtNode* node : nodes) result.nodes.push_back(ReadNode(api, node));
  result.inputs = ReadValues(api, graph, api.Graph_GetNumInputs, api.Graph_GetInputs);
  std::erase_if(result.inputs, [](const HostValue& input) { return input.constant != nullptr; });
  result.outputs = NamesOf(ReadValues(api, graph, api.Graph_GetNumOutputs, api.Graph_GetOutputs));
  return result;
}

HostModel ModelOf(const OrtApi& api, const HostGraph& graph, const std::string& name,
                  std::span<const size_t> members, std::span<const HostValue> inputs,
                  std::vector<std::string> outputs) {
  HostModel model{name, graph.opset, {}, {}, {}, std::move(outputs)};
  for (const HostValue& input : inputs)
    if (input.constant == nullptr && input.type.shape)
      model.inputs.emplace_back(input.name, Shape(input.type.shape->begin(), input.type.shape->end()));
  std::set<std::string> constants;
  for (const size_t member : members) {
    for (const HostValue& input : graph.nodes[member].inputs) {
      if (input.constant == nullptr || !constants.insert(input.name).second) continue;
      model.constants.push_back({input.name, input.type.element_type,
                                 Shape(input.type.shape->begin(), input.type.shape->end()),
                                 BytesOf(api, input.constant)});
    }
    model.nodes.push_back(graph.nodes[member].node);
  }
  return model;
}

bool HasOpenBatch(const HostModel& model) {
  return std::ranges::any_of(model.inputs, [](const auto& input) {
    return !input.second.empty() && input.second.front() == kOpenSize;
  });
}

HostModel WithBatch(HostModel model, int64_t batch) {
  for (auto& [name, shape] : model.inputs)
    if (!shape.empty() && shape.front() == kOpenSize) shape.front() = batch;
  return model;
}

HostRegions SupportedRegions(const OrtApi& api, const HostGraph& graph, const ImportOptions& options) {
  HostRegions result;
  const Readers readers = ReadersOf(graph);
  std::map<std::string, size_t> producers;
  std::vector<RegionNode> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const HostNode& node = graph.nodes[i].node;
    HostRegion alone = RegionOf(graph, readers, {i});
    const bool is_context = graph.nodes[i].is_context;
    const std::string problem = WhyNot(api, graph, alone, options);
    if (is_context) {
      result.regions.push_back(std::move(alone));
    } else if (!problem.empty()) {
      result.refused.push_back(fmt::format("{} \"{}\": {}", node.op_type, node.name, problem));
    }
    RegionNode& region_node =
        nodes.emplace_back(problem.empty(), IsWorthwhile(node.op_type), std::vector<size_t>{});
    for (const auto* names : {&node.inputs, &graph.nodes[i].read_by_subgraphs})
      for (const std::string& input : *names)
        if (const auto producer = producers.find(input); producer != producers.end())
          region_node.sources.push_back(producer->second);
    for (const std::string& output : node.outputs) producers.emplace(output, i);
  }
  for (std::vector<size_t>& members : FindRegions(nodes)) {
    HostRegion region = RegionOf(graph, readers, std::move(members));
    const std::string problem = WhyNot(api, graph, region, options);
    if (problem.empty()) {
      result.regions.push_back(std::move(region));
    } else {
      result.refused.push_back(fmt::format("a region of {} nodes: {}", region.members.size(), problem));
    }
  }
  return result;
}

}  // namespace tilesmith
