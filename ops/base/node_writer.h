// Nodes in the place of a node: what an importer returns for an operator that others can express.
#pragma once

#include <string>
#include <vector>

#include "ops/base/op_registry.h"

namespace tilesmith {

// Tensors are named by the node's own inputs and outputs, and by what Add and the constants return.
class NodeWriter {
 public:
  // The opset of the written nodes.
  static constexpr int64_t kOpset = 21;

  // `part` tells several writers of one node apart.
  explicit NodeWriter(const NodeSpec& spec, const std::string& part = "");

  const std::string& In(size_t index) const { return spec_.input_names.at(index); }
  const std::string& Out(size_t index) const { return spec_.output_names.at(index); }

  // A node, with one output: the tensor `output`, or a new one whose name is returned.
  std::string Add(std::string op_type, std::vector<std::string> inputs, Attributes attributes = {},
                  std::string output = "");
  // An op that no operator stands for, under the node's own name.
  std::string Add(OpPtr op, std::vector<std::string> inputs, std::string output = "");
  std::string Constant(Tensor value);
  std::string Ints(const std::vector<int64_t>& values);  // of rank 1
  std::string Float(float value);                        // a scalar
  // x as another shape, reduced, and so on: the ops whose parameters are inputs.
  std::string Reshape(const std::string& x, const std::vector<int64_t>& shape, std::string output = "");
  std::string Transpose(const std::string& x, const std::vector<int64_t>& perm, std::string output = "");
  std::string Unsqueeze(const std::string& x, const std::vector<int64_t>& axes, std::string output = "");
  std::string Squeeze(const std::string& x, const std::vector<int64_t>& axes, std::string output = "");

  // The nodes of `list`, tensors renamed: its inputs are `inputs`, its outputs get the names returned, which
  // are those of `outputs` where these are not empty. `attributes` are what references refer to.
  std::vector<std::string> Inline(const NodeList& list, const std::vector<std::string>& inputs,
                                  const std::vector<std::string>& outputs, const Attributes& attributes = {});
  void Append(ModelNode node) { nodes_.push_back(std::move(node)); }

  BuiltOp Take() { return {nullptr, {}, std::move(nodes_)}; }

 private:
  std::string NewName(std::string_view what);

  const NodeSpec& spec_;
  const std::string prefix_;
  std::vector<ModelNode> nodes_;
  int64_t names_ = 0;
};

// The names that the nodes of `list` read and that nothing in it defines.
std::vector<std::string> FreeNames(const NodeList& list);

}  // namespace tilesmith
