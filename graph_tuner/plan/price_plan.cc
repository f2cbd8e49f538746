#include "graph_tuner/plan/price_plan.h"

#include <algorithm>
#include <set>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/concat_slices.h"
#include "graph_tuner/plan/stand_alone_costs.h"
#include "layouts/base/check.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// What each node reads and writes, by node id; constants are NCHW. A node that is fused into
// a conv reads what that conv's kernel reads, and writes nothing.
std::vector<LayoutPair> LayoutsByNode(const Graph& graph, const Plan& plan) {
  std::vector<LayoutPair> layouts(graph.size());
  size_t next = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const std::string_view type = graph.node(id).op->Type();
    if (type == "Input") layouts[id].out = EndLayout(graph.node(id), plan.ends.inputs);
    if (type == "Constant") layouts[id].out = TensorLayout(graph.node(id), Layout::Nchw());
    if (type == "Input" || type == "Constant") continue;
    TILESMITH_CHECK(next < plan.nodes.size() && plan.nodes[next].node == graph.node(id).name,
                    "the plan's node {} is not {}", next, graph.node(id).name);
    const NodePlan& node = plan.nodes[next++];
    layouts[id] = node.layouts;
    if (node.fused_into.empty()) continue;
    const auto conv = std::ranges::find(plan.nodes, node.fused_into, &NodePlan::node);
    TILESMITH_CHECK(conv != plan.nodes.end() && conv->record && conv->record->workload.fused(), "{} in {}",
                    node.node, node.fused_into);
    layouts[id].in = conv->layouts.in;
  }
  TILESMITH_CHECK(next == plan.nodes.size(), "{} nodes too many", plan.nodes.size() - next);
  return layouts;
}

void PriceNodes(const Graph& graph, CostSource& costs, const Corrections& corrections, Plan& plan) {
  for (NodePlan& node : plan.nodes) {
    if (!node.fused_into.empty()) {
      node.predicted_seconds = 0;
      continue;
    }
    if (node.record) {
      node.predicted_seconds = corrections.ConvSeconds(node.node, *node.record);
      continue;
    }
    const double seconds = TolerantSeconds(graph, *graph.Find(node.node), node.layouts.in, costs);
    node.predicted_seconds = corrections.OpSeconds(node.node, node.layouts.in, seconds);
  }
}

class Transforms {
 public:
  Transforms(const Graph& graph, CostSource& costs, const Corrections& corrections, Plan& plan)
      : graph_(graph),
        costs_(costs),
        corrections_(corrections),
        plan_(plan),
        layouts_(LayoutsByNode(graph, plan)) {
    for (const NodePlan& node : plan.nodes)
      if (!node.fused_into.empty()) without_tensor_.insert(*graph.Find(node.node));
  }

  void AddAll() {
    const Slices slices = ConcatSlices(graph_);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (without_tensor_.contains(id)) continue;
      std::vector<Layout> made = {layouts_[id].out};
      const bool constant = graph_.node(id).op->Type() == "Constant";
      for (NodeId consumer : graph_.Consumers(id)) {
        const std::vector<NodeId> inputs = graph_.Inputs(consumer);
        for (size_t slot = 0; slot < inputs.size(); ++slot) {
          if (inputs[slot] != id) continue;
          const Layout to =
              slot == 0
                  ? layouts_[consumer].in
                  : TensorLayout(graph_.node(id), InputOrder(graph_.node(consumer), layouts_[consumer].out));
          if (MustFillSlice(graph_, slices, {consumer, slot}, to))
            Fill(id, to);
          else if (!constant)
            Read(id, to, made);
        }
      }
      if (graph_.IsOutput(id)) Read(id, EndLayout(graph_.node(id), plan_.ends.outputs), made);
    }
  }

 private:
  void Read(NodeId id, const Layout& to, std::vector<Layout>& made) {
    const Node& node = graph_.node(id);
    for (const Layout& known : made)
      if (SameForm(node.shape, known, to)) return;
    made.push_back(to);
    const Layout& from = layouts_[id].out;
    Add(node, from, to, costs_.TransformSeconds(node.shape, from, to));
  }

  void Fill(NodeId id, const Layout& to) {
    const Node& node = graph_.node(id);
    const Layout from = SameForm(node.shape, layouts_[id].out, to) ? to : layouts_[id].out;
    Add(node, from, to, FillSeconds(node.shape, from, to, costs_));
  }

  void Add(const Node& tensor, const Layout& from, const Layout& to, double stand_alone) {
    const double seconds = corrections_.ConversionSeconds(tensor, from, to, stand_alone);
    const bool estimate =
        costs_.IsInterpolated(tensor.shape, from, to) && !corrections_.HasMeasured(tensor, from, to);
    plan_.transforms.push_back({tensor.name, from, to, seconds, estimate});
  }

  const Graph& graph_;
  CostSource& costs_;
  const Corrections& corrections_;
  Plan& plan_;
  const std::vector<LayoutPair> layouts_;
  std::set<NodeId> without_tensor_;  // what they compute never leaves the kernel they are fused into
};

}  // namespace

void PricePlan(const Graph& graph, CostSource& costs, Plan& plan, const Corrections& corrections) {
  plan.transforms.clear();
  PriceNodes(graph, costs, corrections, plan);
  Transforms(graph, costs, corrections, plan).AddAll();
  plan.predicted_seconds = 0;
  for (const NodePlan& node : plan.nodes) plan.predicted_seconds += node.predicted_seconds;
  for (const TransformPlan& transform : plan.transforms)
    plan.predicted_seconds += transform.predicted_seconds;
}

}  // namespace tilesmith
