// The network graph: nodes are ops (each produces one tensor), edges are the tensors' uses. Stored as a Boost
// adjacency_list, whose algorithms apply. A Graph is a value; passes map a graph to a new one.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ops/base/op.h"
#include "ops/graph/tail.h"

namespace tilesmith {

struct Node {
  std::string name;  // unique in its graph
  OpPtr op;
  Shape shape;  // of the output
  DataType type = DataType::kF32;
};

// A use of the source's output as input number `slot` of the target.
struct Use {
  int slot = 0;
};

class Graph {
 public:
  // Nodes do not change, so that copies of a graph, of which passes make many, share them.
  using NodePtr = std::shared_ptr<Node>;
  using Boost = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, NodePtr, Use>;
  using NodeId = Boost::vertex_descriptor;  // 0..size()-1, in topological order

  // Copies share what they hold until one of them changes.
  explicit Graph(std::string name = "", const SizeLimits& limits = {});
  Graph(const Graph& other) = default;
  Graph& operator=(const Graph& other) = default;
  // Leaves an empty graph.
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  ~Graph() = default;

  // Infers shape and type. Inputs must exist already, so ids are a topological order. A taken or empty name
  // is made unique with a suffix. Throws Error(kBadModel) naming the node when shapes or types do not fit, or
  // when the output is larger than the limits allow.
  NodeId Add(std::string name, OpPtr op, const std::vector<NodeId>& inputs);
  // The same node as in another graph. Where these inputs are like those it has there, nothing is inferred.
  NodeId AddCopy(const Graph& from, NodeId id, const std::vector<NodeId>& inputs);
  // Room for so many nodes: less time, nothing else.
  void Reserve(size_t nodes) { Own().ids.reserve(nodes); }
  // Outputs keep the order in which they are marked; a node may be marked once.
  void MarkOutput(NodeId node);
  // What computes the model's outputs from this graph's; null, the default, where they are the same.
  void SetTail(std::shared_ptr<const Tail> tail) { Own().tail = std::move(tail); }
  const std::shared_ptr<const Tail>& tail() const { return content_->tail; }
  // The op leaves the graph, and its weights go with it, if nothing else holds them. The node keeps its
  // shape, and everything else works on as long as it asks for no op of that node. References to it stay
  // valid.
  OpPtr Release(NodeId id);

  const std::string& name() const { return content_->name; }
  const SizeLimits& limits() const { return content_->limits; }
  size_t size() const { return boost::num_vertices(boost()); }
  const Node& node(NodeId id) const { return *boost()[id]; }
  // The node's op when it is a T, else null.
  template <typename T>
  const T* As(NodeId id) const {
    return dynamic_cast<const T*>(node(id).op.get());
  }
  // Whether the node computes nothing: an input, or a constant.
  bool IsSource(NodeId id) const { return As<InputOp>(id) != nullptr || As<ConstantOp>(id) != nullptr; }
  std::vector<NodeId> Inputs(NodeId id) const;     // by slot
  std::vector<NodeId> Consumers(NodeId id) const;  // ascending, each once
  std::vector<Shape> InputShapes(NodeId id) const;
  std::vector<DataType> InputTypes(NodeId id) const;
  std::vector<NodeId> GraphInputs() const;  // nodes whose op is an InputOp, in order of addition
  const std::vector<NodeId>& outputs() const { return content_->outputs; }
  bool IsOutput(NodeId id) const { return content_->is_output.contains(id); }
  std::optional<NodeId> Find(std::string_view name) const;
  const Boost& boost() const { return content_->graph; }

 private:
  struct Content {
    std::string name;
    SizeLimits limits;
    Boost graph = {};
    std::vector<NodeId> outputs = {};
    std::shared_ptr<const Tail> tail = {};
    std::unordered_set<NodeId> is_output = {};
    std::unordered_map<std::string_view, NodeId> ids = {};  // by the nodes' own names
    std::unordered_map<std::string, int> next_suffix = {};  // of names that were wanted more than once
  };
  static const std::shared_ptr<Content>& Empty();
  // The content, which no other graph has from then on.
  Content& Own();
  std::string UniqueName(const std::string& wanted);
  NodeId AddNode(NodePtr node, const std::vector<NodeId>& inputs);

  std::shared_ptr<Content> content_;
};

// A stable 16-digit hash of structure, signatures and shapes (not of weight values): what a plan is for.
std::string GraphHash(const Graph& graph);

// Copies `graph` node by node in topological order. `rewrite(id, inputs, result)` gets the already mapped
// inputs and returns the node of `result` that stands for `id`, or nullopt to copy it unchanged. Nodes from
// which no output is reachable are dropped, graph inputs excepted.
using Rewrite = std::function<std::optional<Graph::NodeId>(
    Graph::NodeId id, const std::vector<Graph::NodeId>& inputs, Graph& result)>;
Graph RewriteGraph(const Graph& graph, const Rewrite& rewrite);
// The graph without those nodes; one that has none is returned as it is.
Graph DropDeadNodes(Graph graph);

}  // namespace tilesmith
