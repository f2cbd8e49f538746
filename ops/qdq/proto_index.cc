#include "ops/qdq/proto_index.h"

#include <algorithm>

namespace tilesmith {
namespace {

// Whatever the nodes of a body, and those of its own bodies, read.
void AddReads(const onnx::GraphProto& body, std::set<std::string>& reads);

void AddBodyReads(const onnx::NodeProto& node, std::set<std::string>& reads) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) AddReads(attribute.g(), reads);
    for (const onnx::GraphProto& body : attribute.graphs()) AddReads(body, reads);
  }
}

void AddReads(const onnx::GraphProto& body, std::set<std::string>& reads) {
  for (const onnx::NodeProto& node : body.node()) {
    reads.insert(node.input().begin(), node.input().end());
    AddBodyReads(node, reads);
  }
  for (const onnx::ValueInfoProto& output : body.output()) reads.insert(output.name());
}

}  // namespace

const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node, std::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

int64_t IntAttribute(const onnx::NodeProto& node, std::string_view name, int64_t otherwise) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  return attribute == nullptr ? otherwise : attribute->i();
}

float FloatAttribute(const onnx::NodeProto& node, std::string_view name, float otherwise) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  return attribute == nullptr ? otherwise : attribute->f();
}

std::string InputOf(const onnx::NodeProto& node, int slot) {
  return slot < node.input_size() ? node.input(slot) : "";
}

bool IsDefaultDomain(const onnx::NodeProto& node) {
  return node.domain().empty() || node.domain() == "ai.onnx";
}

ProtoIndex::ProtoIndex(const onnx::GraphProto& graph) {
  for (const onnx::TensorProto& initializer : graph.initializer())
    constants_.emplace(initializer.name(), &initializer);
  for (const onnx::ValueInfoProto& output : graph.output()) read_elsewhere_.insert(output.name());
  for (int i = 0; i < graph.node_size(); ++i) {
    const onnx::NodeProto& node = graph.node(i);
    for (const std::string& output : node.output()) producers_.emplace(output, i);
    for (const std::string& input : node.input()) readers_[input].push_back(i);
    AddBodyReads(node, read_elsewhere_);
    if (node.output_size() == 1) AddConstantOf(node);
  }
}

void ProtoIndex::AddConstantOf(const onnx::NodeProto& node) {
  const onnx::AttributeProto* value = FindAttribute(node, "value");
  if (node.op_type() == "Constant" && value != nullptr && value->has_t()) {
    constants_.emplace(node.output(0), &value->t());
  } else if (node.op_type() == "Identity") {  // exporters name equal weights so
    const onnx::TensorProto* same = Constant(InputOf(node, 0));
    if (same != nullptr) constants_.emplace(node.output(0), same);
  }
}

const onnx::TensorProto* ProtoIndex::Constant(const std::string& tensor) const {
  const auto found = constants_.find(tensor);
  return found == constants_.end() ? nullptr : found->second;
}

int ProtoIndex::Producer(const std::string& tensor) const {
  const auto found = producers_.find(tensor);
  return found == producers_.end() ? -1 : found->second;
}

const std::vector<int>& ProtoIndex::Readers(const std::string& tensor) const {
  static const std::vector<int> kNone;
  const auto found = readers_.find(tensor);
  return found == readers_.end() ? kNone : found->second;
}

bool ProtoIndex::IsReadElsewhere(const std::string& tensor) const { return read_elsewhere_.contains(tensor); }

int ProtoIndex::OnlyReader(const std::string& tensor) const {
  const std::vector<int>& readers = Readers(tensor);
  return readers.size() == 1 && !IsReadElsewhere(tensor) ? readers[0] : -1;
}

void FreshNames::Take(const onnx::GraphProto& graph) {
  for (const onnx::TensorProto& initializer : graph.initializer()) taken_.insert(initializer.name());
  for (const onnx::ValueInfoProto& input : graph.input()) taken_.insert(input.name());
  for (const onnx::NodeProto& node : graph.node()) {
    taken_.insert(node.name());
    taken_.insert(node.input().begin(), node.input().end());
    taken_.insert(node.output().begin(), node.output().end());
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) Take(attribute.g());
      for (const onnx::GraphProto& body : attribute.graphs()) Take(body);
    }
  }
}

std::string FreshNames::New(const std::string& wanted) {
  std::string name = wanted;
  while (!taken_.insert(name).second) name = wanted + "_" + std::to_string(++next_[wanted]);
  return name;
}

void DropUnreadConstants(onnx::GraphProto& graph) {
  std::set<std::string> read;
  for (const onnx::ValueInfoProto& output : graph.output()) read.insert(output.name());
  std::set<const onnx::NodeProto*> unread;
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    const onnx::NodeProto& node = graph.node(i);
    const bool names_a_constant = node.op_type() == "Constant" || node.op_type() == "Identity";
    if (names_a_constant && node.output_size() == 1 && !read.contains(node.output(0))) {
      unread.insert(&node);
    } else {
      read.insert(node.input().begin(), node.input().end());
      AddBodyReads(node, read);
    }
  }
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    if (!unread.contains(&node)) *nodes.Add() = std::move(node);
  }
  nodes.Swap(graph.mutable_node());
  auto& initializers = *graph.mutable_initializer();
  initializers.erase(std::remove_if(initializers.begin(), initializers.end(),
                                    [&](const auto& tensor) { return !read.contains(tensor.name()); }),
                     initializers.end());
}

}  // namespace tilesmith
