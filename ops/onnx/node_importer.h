// Nodes of a model become nodes of a Graph, or constants, or the graph's tail.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ops/base/op_registry.h"
#include "ops/graph/graph.h"

namespace tilesmith {

class Refusals {
 public:
  // A node, told with those of its op type. The reason may begin with `node "NAME" (TYPE): `.
  void AddNode(const std::string& op_type, const std::string& name, std::string reason);
  // A tensor, told with those that have the same reason, which may begin with `initializer "NAME": `.
  void AddTensor(const std::string& name, std::string reason);

  bool empty() const { return rows_.empty(); }
  // Throws Error(kBadModel) that begins with `source`, on one line where there is one reason.
  [[noreturn]] void Throw(const std::string& source) const;

 private:
  struct Row {
    std::string op_type, first, reason;  // the type is "" for tensors
    long count = 0;
  };
  void Add(Row row, bool same_reason);

  std::vector<Row> rows_;
  long hidden_ = 0;  // tensors of further reasons
};

// A model's own functions, by their op types.
using ModelFunctions = std::map<std::string, NodeList, std::less<>>;

struct NodeImporterOptions {
  std::string source;                               // for messages
  int64_t opset = 0;                                // of the default domain
  std::shared_ptr<const ModelFunctions> functions;  // may be null
  // Whose kernels compute what depends on constants only; null: references do.
  const OpMachine* machine = nullptr;
  // Outputs of 16-bit floats, and which: values are f32 up to there.
  std::map<std::string, DataType> narrow_outputs = {};
};

// First all constants, inputs and the names that are reserved and read, then the nodes in their order. No
// value has a type of 16-bit floats, whatever the model says: they are f32 (ComputedType, onnx_type.h).
class NodeImporter {
 public:
  NodeImporter(Graph graph, NodeImporterOptions options);

  // A tensor known now. `initializer`: it adds to what may be computed at load time.
  void AddConstant(const std::string& name, std::shared_ptr<const Tensor> value, bool initializer = true);
  // ONNX's number of the type that a constant had before it was unpacked.
  void SetNarrow(const std::string& constant, int64_t type) { values_[constant].info.narrow = type; }
  void AddInput(const std::string& name, const Shape& shape, DataType type);
  // A tensor that cannot be had, for a reason among the problems.
  void AddUnknown(const std::string& name) { values_[name].state = State::kUnknown; }
  // What Finish is to report besides.
  Refusals& problems() { return problems_; }
  // Names that only the graph's inputs and outputs may have.
  void Reserve(const std::string& name) { reserved_.insert(name); }
  // Tensors that somebody reads: outputs nobody reads are not computed, and a constant is let go when the
  // last node that reads it has been taken in.
  void AddReader(const ModelNode& node);
  void AddReader(const std::string& tensor) { ++read_[tensor]; }

  // Takes in one node, and those that stand for it. What is not supported is kept for Finish to report.
  void Add(ModelNode node);

  bool Knows(const std::string& name) const { return values_.contains(name); }
  // The graph with these outputs. Throws Error(kBadModel) with a line for every op type that is not
  // supported, and when no node computes an output.
  Graph Finish(const std::vector<std::string>& outputs);
  // The values of these tensors, all of which are constants. Throws likewise.
  std::vector<Tensor> Values(const std::vector<std::string>& names) const;

 private:
  enum class State {
    kKnown,
    kUnknown,  // its node, or one in front of it, is among the problems
    kLate,     // the tail computes it
  };
  struct Value {
    NodeInput info;
    std::optional<Graph::NodeId> node;
    State state = State::kKnown;
  };

  void Take(const ModelNode& node);
  void LetGo(const ModelNode& node);
  bool Reads(const ModelNode& node, State state) const;
  void Defer(const ModelNode& node);
  void ReadLate(const std::string& tensor);
  void BuildOutputs(const ModelNode& node, const std::string& name);
  NodeSpec SpecOf(const ModelNode& node, const std::string& name, int output) const;
  BuiltOp BuildCall(const NodeSpec& spec) const;
  void Expand(BuiltOp built);
  Value Build(const NodeSpec& spec, const BuiltOp& built, bool written);
  // What the op computes, where that is known now: all that it reads is, or the result has no elements. Null
  // elsewhere.
  std::shared_ptr<const Tensor> Fold(const NodeSpec& spec, const BuiltOp& built);
  void Spend(double operations);
  void CheckExtraOutputs(const ModelNode& node) const;
  std::vector<NodeInput> InputsOf(const ModelNode& node) const;
  std::string NameFor(const ModelNode& node) const;
  std::string NodeName(const std::string& tensor) const;
  Graph::NodeId AddNamed(const std::string& name, OpPtr op, const std::vector<Graph::NodeId>& inputs);
  Graph::NodeId NodeOf(const std::string& tensor);
  OpPtr NarrowingOf(const std::string& output) const;
  void AddOutput(const std::string& name);
  void AddTail(const std::vector<std::string>& outputs);

  Graph graph_;
  const NodeImporterOptions options_;
  int64_t operations_left_;  // of SizeLimits::folded_operations
  int64_t expansion_left_;
  std::unordered_map<std::string, Value> values_;
  std::unordered_map<std::string, int64_t> read_;  // by how many that are still to come
  std::unordered_set<std::string> reserved_;
  std::deque<ModelNode> pending_;
  Refusals problems_;
  std::vector<ModelNode> late_;
  std::vector<std::string> late_reads_;  // tensors of the graph, each once
  std::map<std::string, std::shared_ptr<const Tensor>> late_constants_;
};

}  // namespace tilesmith
