// Who makes and who reads each tensor of a model's main graph.
#pragma once

#include <onnx/onnx_pb.h>

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace tilesmith {

const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node, std::string_view name);
int64_t IntAttribute(const onnx::NodeProto& node, std::string_view name, int64_t otherwise);
float FloatAttribute(const onnx::NodeProto& node, std::string_view name, float otherwise);
// The input's name; "" where the node has no such input.
std::string InputOf(const onnx::NodeProto& node, int slot);
bool IsDefaultDomain(const onnx::NodeProto& node);

// Refers to the graph, which must not change meanwhile.
class ProtoIndex {
 public:
  explicit ProtoIndex(const onnx::GraphProto& graph);

  // An initializer, the value of a Constant node, or an Identity of either; null for what is neither.
  const onnx::TensorProto* Constant(const std::string& tensor) const;
  int Producer(const std::string& tensor) const;  // the node's index; -1 for none
  // Nodes of the main graph, in order, one for each of its uses.
  const std::vector<int>& Readers(const std::string& tensor) const;
  // A model's output, or read in the body of a loop or branch.
  bool IsReadElsewhere(const std::string& tensor) const;
  // The node that alone reads it; -1 where there are none or several.
  int OnlyReader(const std::string& tensor) const;

 private:
  void AddConstantOf(const onnx::NodeProto& node);

  std::unordered_map<std::string, const onnx::TensorProto*> constants_;
  std::unordered_map<std::string, int> producers_;
  std::unordered_map<std::string, std::vector<int>> readers_;
  std::set<std::string> read_elsewhere_;
};

// Names that nothing in a model has yet.
class FreshNames {
 public:
  explicit FreshNames(const onnx::GraphProto& graph) { Take(graph); }
  // `wanted`, or that with a number behind it.
  std::string New(const std::string& wanted);

 private:
  void Take(const onnx::GraphProto& graph);

  std::set<std::string> taken_;
  std::unordered_map<std::string, int> next_;  // suffix
};

// Initializers, Constant nodes and Identities that nothing reads go.
void DropUnreadConstants(onnx::GraphProto& graph);

}  // namespace tilesmith
