#include "ops/graph/graph.h"

#include <algorithm>
#include <utility>

#include "layouts/base/check.h"
#include "layouts/base/settings.h"
#include "layouts/base/stable_hash.h"
#include "ops/base/op.h"

namespace tilesmith {
namespace {

// A node's inputs and its output are in memory together, whatever else is.
void CheckBytes(std::span<const Shape> inputs, std::span<const DataType> types, const Node& output,
                const SizeLimits& limits) {
  Checked bytes = PaddedBytes(output.shape, Layout::Nchw(output.type));
  for (size_t i = 0; i < inputs.size(); ++i) bytes += PaddedBytes(inputs[i], Layout::Nchw(types[i]));
  if (bytes.value() <= limits.network_bytes) return;
  throw LimitError(fmt::format(
      "its inputs and its output {} take {} MiB of memory, the limit for a network is {} ({})",
      ShapeToString(output.shape), bytes.value() >> 20, limits.network_bytes >> 20, settings::kMaxMemory));
}

// The nodes from which an output can be reached, and every graph input.
std::vector<bool> LiveNodes(const Graph& graph) {
  std::vector<bool> live(graph.size(), false);
  for (const Graph::NodeId id : graph.outputs()) live[id] = true;
  for (const Graph::NodeId id : graph.GraphInputs()) live[id] = true;
  for (Graph::NodeId id = graph.size(); id-- > 0;) {
    if (!live[id]) continue;
    for (const Graph::NodeId input : graph.Inputs(id)) live[input] = true;
  }
  return live;
}

Graph OnlyLiveNodes(const Graph& graph, const std::vector<bool>& live) {
  Graph result(graph.name(), graph.limits());
  result.Reserve(graph.size());
  std::vector<Graph::NodeId> mapped(graph.size());
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    if (!live[id]) continue;
    std::vector<Graph::NodeId> inputs = graph.Inputs(id);
    for (Graph::NodeId& input : inputs) input = mapped[input];
    mapped[id] = result.AddCopy(graph, id, inputs);
  }
  for (const Graph::NodeId id : graph.outputs()) result.MarkOutput(mapped[id]);
  result.SetTail(graph.tail());
  return result;
}

}  // namespace

Graph::Graph(std::string name, const SizeLimits& limits)
    : content_(std::make_shared<Content>(Content{.name = std::move(name), .limits = limits})) {}

const std::shared_ptr<Graph::Content>& Graph::Empty() {
  static const auto empty = std::make_shared<Content>();
  return empty;
}

Graph::Graph(Graph&& other) noexcept : content_(std::exchange(other.content_, Empty())) {}

Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(content_, other.content_);
  return *this;
}

Graph::Content& Graph::Own() {
  if (content_.use_count() > 1) content_ = std::make_shared<Content>(*content_);
  return *content_;
}

// As many steps as there are nodes of one name, not their square.
std::string Graph::UniqueName(const std::string& wanted) {
  Content& content = Own();
  if (!wanted.empty() && !content.ids.contains(wanted)) return wanted;
  const std::string stem = wanted.empty() ? "node" : wanted;
  int& suffix = content.next_suffix[stem];
  while (true) {
    std::string name = fmt::format("{}_{}", stem, ++suffix);
    if (!content.ids.contains(name)) return name;
  }
}

Graph::NodeId Graph::Add(std::string name, OpPtr op, const std::vector<NodeId>& inputs) {
  TILESMITH_CHECK(op != nullptr, "node {}", name);
  Node node;
  node.name = UniqueName(name);
  std::vector<Shape> shapes;
  std::vector<DataType> types;
  for (const NodeId input : inputs) {
    TILESMITH_CHECK(input < size(), "node {}: input {} of {}", node.name, input, size());
    shapes.push_back(this->node(input).shape);
    types.push_back(this->node(input).type);
  }
  const auto about_it = [&](const Error& error) {
    return fmt::format("node \"{}\" ({}): {}", node.name, op->Type(), error.what());
  };
  try {
    node.type = op->OutputType(types);
    node.shape = op->InferShape(shapes);
    CheckShape(node.shape, limits());
    CheckBytes(shapes, types, node, limits());
  } catch (const LimitError& error) {
    throw LimitError(about_it(error));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadModel) throw;
    throw Error(ErrorCode::kBadModel, about_it(error));
  }
  node.op = std::move(op);
  return AddNode(std::make_shared<Node>(std::move(node)), inputs);
}

Graph::NodeId Graph::AddNode(NodePtr node, const std::vector<NodeId>& inputs) {
  Content& content = Own();
  const NodeId id = boost::add_vertex(node, content.graph);
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    boost::add_edge(inputs[slot], id, Use{static_cast<int>(slot)}, content.graph);
  }
  content.ids.emplace(this->node(id).name, id);
  return id;
}

Graph::NodeId Graph::AddCopy(const Graph& from, NodeId id, const std::vector<NodeId>& inputs) {
  const NodePtr& node = from.boost()[id];
  const std::vector<NodeId> old_inputs = from.Inputs(id);
  bool alike =
      inputs.size() == old_inputs.size() && !content_->ids.contains(node->name) && limits() == from.limits();
  for (size_t slot = 0; alike && slot < inputs.size(); ++slot) {
    const Node &now = this->node(inputs[slot]), &then = from.node(old_inputs[slot]);
    alike = now.type == then.type && now.shape == then.shape;
  }
  return alike ? AddNode(node, inputs) : Add(node->name, node->op, inputs);
}

OpPtr Graph::Release(NodeId id) {
  Content& content = Own();
  NodePtr& node = content.graph[id];
  if (node.use_count() > 1) {  // other graphs keep theirs as it is
    content.ids.erase(node->name);
    node = std::make_shared<Node>(*node);
    content.ids.emplace(node->name, id);
  }
  return std::move(node->op);
}

void Graph::MarkOutput(NodeId node) {
  TILESMITH_CHECK(node < size() && !IsOutput(node), "output {} of {}", node, size());
  Own().outputs.push_back(node);
  Own().is_output.insert(node);
}

std::vector<Graph::NodeId> Graph::Inputs(NodeId id) const {
  std::vector<NodeId> inputs(boost::in_degree(id, boost()));
  for (auto [edge, end] = boost::in_edges(id, boost()); edge != end; ++edge) {
    inputs[boost()[*edge].slot] = boost::source(*edge, boost());
  }
  return inputs;
}

std::vector<Graph::NodeId> Graph::Consumers(NodeId id) const {
  std::vector<NodeId> consumers;
  for (auto [edge, end] = boost::out_edges(id, boost()); edge != end; ++edge) {
    consumers.push_back(boost::target(*edge, boost()));
  }
  std::ranges::sort(consumers);
  const auto repeated = std::ranges::unique(consumers);
  consumers.erase(repeated.begin(), repeated.end());
  return consumers;
}

std::vector<Shape> Graph::InputShapes(NodeId id) const {
  std::vector<Shape> shapes;
  for (const NodeId input : Inputs(id)) shapes.push_back(node(input).shape);
  return shapes;
}

std::vector<DataType> Graph::InputTypes(NodeId id) const {
  std::vector<DataType> types;
  for (const NodeId input : Inputs(id)) types.push_back(node(input).type);
  return types;
}

std::vector<Graph::NodeId> Graph::GraphInputs() const {
  std::vector<NodeId> inputs;
  for (NodeId id = 0; id < size(); ++id) {
    if (As<InputOp>(id) != nullptr) inputs.push_back(id);
  }
  return inputs;
}

std::optional<Graph::NodeId> Graph::Find(std::string_view name) const {
  const auto found = content_->ids.find(name);
  if (found == content_->ids.end()) return std::nullopt;
  return found->second;
}

std::string GraphHash(const Graph& graph) {
  StableHash hash;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    hash.Add(node.op->Signature());
    hash.Add(ShapeToString(node.shape));
    hash.Add(static_cast<int64_t>(node.type));
    const std::vector<Graph::NodeId> inputs = graph.Inputs(id);
    hash.Add(static_cast<int64_t>(inputs.size()));
    for (const Graph::NodeId input : inputs) hash.Add(static_cast<int64_t>(input));
  }
  for (const Graph::NodeId id : graph.outputs()) hash.Add(static_cast<int64_t>(id));
  return fmt::format("{:016x}", hash.value());
}

Graph RewriteGraph(const Graph& graph, const Rewrite& rewrite) {
  Graph result(graph.name(), graph.limits());
  result.Reserve(graph.size());
  std::vector<Graph::NodeId> mapped(graph.size());
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    std::vector<Graph::NodeId> inputs = graph.Inputs(id);
    for (Graph::NodeId& input : inputs) input = mapped[input];
    const std::optional<Graph::NodeId> replacement = rewrite(id, inputs, result);
    mapped[id] = replacement ? *replacement : result.AddCopy(graph, id, inputs);
  }
  for (const Graph::NodeId id : graph.outputs()) result.MarkOutput(mapped[id]);
  result.SetTail(graph.tail());
  return DropDeadNodes(std::move(result));
}

Graph DropDeadNodes(Graph graph) {
  const std::vector<bool> live = LiveNodes(graph);
  if (std::ranges::find(live, false) != live.end()) return OnlyLiveNodes(graph, live);
  return graph;
}

}  // namespace tilesmith
