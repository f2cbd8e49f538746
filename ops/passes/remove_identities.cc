#include <algorithm>
#include <map>

#include "ops/base/input.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/concat.h"
#include "ops/movement/pad.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
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
  if (const PadOp* pad = OpAs<PadOp>(graph, id)) {
    return AllEqual<int64_t>(pad->begin(), 0) && AllEqual<int64_t>(pad->end(), 0);
  }
  if (const ActivationOp* op = OpAs<ActivationOp>(graph, id)) {
    return op->activation().kind == ActivationKind::kNone;
  }
  if (const ScaleShiftOp* op = OpAs<ScaleShiftOp>(graph, id)) {
    return op->activation().kind == ActivationKind::kNone && AllEqual(op->scale(), 1.0f) &&
           AllEqual(op->shift(), 0.0f);
  }
  return OpAs<ConcatOp>(graph, id) != nullptr || OpAs<SumOp>(graph, id) != nullptr;
}

// For each node the one that stands for it: itself, unless it goes. A removed output passes its name on,
// which takes a source with no claim to its own.
struct Plan {
  std::vector<NodeId> stands_for;
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
      if (claimed || OpAs<InputOp>(graph, source) != nullptr) continue;
      plan.new_names[source] = graph.node(id).name;
    }
    plan.stands_for[id] = source;
  }
  return plan;
}

}  // namespace

Graph RemoveIdentities(const Graph& graph) {
  const Plan plan = PlanRemoval(graph);
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        if (plan.stands_for[id] != id) return inputs[0];
        const auto renamed = plan.new_names.find(id);
        if (renamed == plan.new_names.end()) return std::nullopt;
        return result.Add(renamed->second, graph.node(id).op, inputs);
      });
}

}  // namespace tilesmith
