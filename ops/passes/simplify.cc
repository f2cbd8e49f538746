#include <algorithm>
#include <map>

#include "ops/base/op.h"
#include "ops/base/saved_op.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/concat.h"
#include "ops/movement/pad.h"
#include "ops/movement/transpose.h"
#include "ops/movement/view.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {

Graph FoldConstants(const Graph& graph) {
  const auto is_constant = [&](Graph::NodeId id) { return graph.As<ConstantOp>(id) != nullptr; };
  bool any = false;
  for (Graph::NodeId id = 0; id < graph.size() && !any; ++id) {
    const std::vector<Graph::NodeId> inputs = graph.Inputs(id);
    any = !inputs.empty() && std::ranges::all_of(inputs, is_constant);
  }
  if (!any) return graph;
  return RewriteGraph(graph,
                      [&](Graph::NodeId id, const std::vector<Graph::NodeId>& inputs,
                          Graph& result) -> std::optional<Graph::NodeId> {
                        std::vector<TensorPtr> values;
                        for (const Graph::NodeId input : inputs) {
                          const ConstantOp* constant = result.As<ConstantOp>(input);
                          if (constant == nullptr) return std::nullopt;
                          values.push_back(constant->value());
                        }
                        if (values.empty()) return std::nullopt;
                        const Node& node = graph.node(id);
                        TensorPtr folded = DerivedBy(
                            node.op, values, [&](auto tensors) { return node.op->Reference(tensors); });
                        return result.Add(node.name, std::make_shared<ConstantOp>(folded), {});
                      });
}

namespace {

OpPtr AsLeakyRelu(const PReluOp& op) {
  const std::vector<float>& slopes = op.slopes();
  const bool uniform = std::ranges::all_of(slopes, [&](float slope) { return slope == slopes.front(); });
  if (slopes.empty() || !uniform) return nullptr;
  return std::make_shared<ActivationOp>(
      Activation{.kind = ActivationKind::kLeakyRelu, .alpha = slopes.front(), .beta = 0});
}

// The axes that matter, those longer than 1, stay in order: the elements stay where they are.
OpPtr AsReshape(const TransposeOp& op, const Shape& from, const Shape& to) {
  int64_t last = -1;
  for (const int64_t axis : op.perm()) {
    if (from[axis] == 1) continue;
    if (axis < last) return nullptr;
    last = axis;
  }
  return std::make_shared<ViewOp>("Reshape", to);
}

OpPtr Simpler(const Graph& graph, Graph::NodeId id) {
  if (const PReluOp* prelu = graph.As<PReluOp>(id)) return AsLeakyRelu(*prelu);
  if (const TransposeOp* transpose = graph.As<TransposeOp>(id)) {
    return AsReshape(*transpose, graph.InputShapes(id)[0], graph.node(id).shape);
  }
  return nullptr;
}

}  // namespace

Graph Canonicalize(const Graph& graph) {
  std::map<Graph::NodeId, OpPtr> simpler;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    if (OpPtr op = Simpler(graph, id)) simpler.emplace(id, std::move(op));
  }
  if (simpler.empty()) return graph;
  return RewriteGraph(graph,
                      [&](Graph::NodeId id, const std::vector<Graph::NodeId>& inputs,
                          Graph& result) -> std::optional<Graph::NodeId> {
                        const auto found = simpler.find(id);
                        if (found == simpler.end()) return std::nullopt;
                        return result.Add(graph.node(id).name, found->second, inputs);
                      });
}

namespace {

using NodeId = Graph::NodeId;

template <typename T>
bool AllEqual(const std::vector<T>& values, T wanted) {
  return std::ranges::all_of(values, [&](T value) { return value == wanted; });
}

bool IsIdentity(const Graph& graph, NodeId id) {
  const std::vector<Shape> shapes = graph.InputShapes(id);
  if (shapes.size() != 1) return false;
  if (IsPlainView(*graph.node(id).op)) return graph.node(id).shape == shapes[0];
  if (const PadOp* pad = graph.As<PadOp>(id)) {
    return AllEqual<int64_t>(pad->begin(), 0) && AllEqual<int64_t>(pad->end(), 0);
  }
  if (const ActivationOp* op = graph.As<ActivationOp>(id)) {
    return op->activation().kind == ActivationKind::kNone;
  }
  if (const ScaleShiftOp* op = graph.As<ScaleShiftOp>(id)) {
    return op->activation().kind == ActivationKind::kNone && AllEqual(op->scale(), 1.0f) &&
           AllEqual(op->shift(), 0.0f);
  }
  return graph.As<ConcatOp>(id) != nullptr || graph.As<SumOp>(id) != nullptr;
}

// For each node the one that stands for it: itself, unless it goes. A removed output passes its name on,
// which takes a source with no claim to its own.
struct Plan {
  std::vector<NodeId> stands_for;
  int removed = 0;
  std::map<NodeId, std::string> new_names;
};

Plan PlanRemoval(const Graph& graph) {
  Plan plan;
  for (NodeId id = 0; id < graph.size(); ++id) {
    plan.stands_for.push_back(id);
    if (!IsIdentity(graph, id)) continue;
    const NodeId source = plan.stands_for[graph.Inputs(id)[0]];
    if (graph.IsOutput(id)) {
      const bool claimed = graph.IsOutput(source) || plan.new_names.contains(source);
      if (claimed || graph.As<InputOp>(source) != nullptr) continue;
      plan.new_names[source] = graph.node(id).name;
    }
    plan.stands_for[id] = source;
    ++plan.removed;
  }
  return plan;
}

}  // namespace

Graph RemoveIdentities(const Graph& graph) {
  const Plan plan = PlanRemoval(graph);
  if (plan.removed == 0) return graph;
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        if (plan.stands_for[id] != id) return inputs[0];
        const auto renamed = plan.new_names.find(id);
        if (renamed == plan.new_names.end()) return std::nullopt;
        return result.Add(renamed->second, graph.node(id).op, inputs);
      });
}

Graph ChainConcats(const Graph& graph) {
  std::map<std::vector<NodeId>, NodeId> earlier;  // inputs of a concat, in the result, before any rewriting
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        const ConcatOp* concat = graph.As<ConcatOp>(id);
        if (concat == nullptr || concat->axis() != 1) return std::nullopt;
        std::optional<NodeId> node;
        for (size_t length = inputs.size(); length >= 2 && !node; --length) {
          const auto found = earlier.find({inputs.begin(), inputs.begin() + length});
          if (found == earlier.end()) continue;
          if (length == inputs.size()) {
            if (!graph.IsOutput(id)) return found->second;
            continue;  // a repeated output needs a node of its own
          }
          std::vector<NodeId> rest = {found->second};
          rest.insert(rest.end(), inputs.begin() + length, inputs.end());
          node = result.Add(graph.node(id).name, graph.node(id).op, rest);
        }
        if (!node) node = result.Add(graph.node(id).name, graph.node(id).op, inputs);
        earlier.emplace(inputs, *node);
        return node;
      });
}

}  // namespace tilesmith
