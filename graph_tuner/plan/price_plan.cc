#include "graph_tuner/plan/price_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/concat_slices.h"
#include "graph_tuner/plan/crossings.h"
#include "layouts/base/check.h"
#include "ops/conv/conv.h"

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

// The layout that all tensors of a node that is no conv are in the order of.
Layout OrderOf(const Graph& graph, NodeId id, const LayoutPair& layouts) {
  const std::vector<NodeId> inputs = graph.Inputs(id);
  const bool as_first = !inputs.empty() && graph.node(inputs[0]).type == DataType::kF32;
  return as_first ? layouts.in : InputOrder(graph.node(id), layouts.out);
}

void PriceNodes(const Graph& graph, CostSource& costs, const Corrections& corrections, Crossings& crossings,
                Plan& plan) {
  for (NodePlan& node : plan.nodes) {
    node.predicted_seconds = node.crossing_seconds = 0;
    if (!node.fused_into.empty()) continue;
    if (node.record) {
      const Deal deal = crossings.DealOf(*node.record, node.split);
      node.predicted_seconds = corrections.ConvSeconds(node.node, *node.record,
                                                       {node.split, BandRowsOf(plan, node), deal.balance});
      continue;
    }
    const Graph::NodeId id = *graph.Find(node.node);
    const Layout order = OrderOf(graph, id, node.layouts);
    const double seconds = crossings.priced() && !graph.node(id).op->IsView()
                               ? crossings.OwnSeconds(id, order, crossings.DealOf(id, order, node.split))
                               : TolerantSeconds(graph, id, node.layouts.in, costs);
    node.predicted_seconds =
        corrections.OpSeconds(node.node, node.layouts.in, seconds, {node.split, BandRowsOf(plan, node)});
  }
}

// Adds to every node what it waits for since other threads hold what it reads and writes. Precondition: that
// has a price.
class ChargedCrossings {
 public:
  ChargedCrossings(const Graph& graph, const Corrections& corrections, Crossings& crossings, Plan& plan)
      : graph_(graph),
        corrections_(corrections),
        plan_(plan),
        layouts_(LayoutsByNode(graph, plan)),
        slices_(ConcatSlices(graph)),
        crossings_(crossings) {}

  using Owners = std::map<NodeId, Ownership>;  // of the tensors that nodes produce

  Owners AddAll() {
    for (NodePlan& node : plan_.nodes) planned_[*graph_.Find(node.node)] = &node;
    for (const auto& [id, node] : planned_) owners_[id] = OwnershipOf(id);
    for (const auto& [id, node] : planned_) Add(id);
    return std::move(owners_);
  }

 private:
  NodePlan& ComputedBy(NodeId id) {
    NodePlan& node = *planned_.at(id);
    return node.fused_into.empty() ? node : *planned_.at(*graph_.Find(node.fused_into));
  }

  Ownership OwnershipOf(NodeId id) {
    const NodePlan& node = ComputedBy(id);
    if (node.record) return crossings_.DealOf(*node.record, node.split).ownership;
    return crossings_.DealOf(id, Order(id), node.split).ownership;
  }

  Layout Order(NodeId id) const { return OrderOf(graph_, id, layouts_[id]); }

  void Add(NodeId id) {
    NodePlan& node = ComputedBy(id);
    const bool fused = !planned_.at(id)->fused_into.empty();
    const bool is_view = graph_.node(id).op->IsView();
    const double scale = corrections_.CrossingScale(graph_.node(id).name);
    double seconds = 0;
    if (!fused && !is_view)
      seconds += crossings_.WriteSeconds(id, node.record ? layouts_[id].out : Order(id), owners_.at(id));
    if (!fused && node.record) seconds += crossings_.WeightSeconds(*node.record, node.split);
    const std::vector<NodeId> inputs = graph_.Inputs(id);
    for (size_t slot = 0; slot < inputs.size(); ++slot)
      if (!is_view) seconds += ReadSeconds(id, slot, inputs[slot], node);
    seconds *= scale;
    node.crossing_seconds += seconds;
    node.predicted_seconds += seconds;
  }

  double ReadSeconds(NodeId id, size_t slot, NodeId input, const NodePlan& node) {
    if (graph_.node(input).op->Type() == "Constant") return 0;
    const auto producer = planned_.find(input);
    const bool of_caller = producer == planned_.end();
    // Of a region's tensors a thread computes all that it reads.
    if (!of_caller && node.region > 0 && producer->second->region == node.region) return 0;
    // What is computed in front of a conv inside its kernel.
    if (!of_caller && !producer->second->fused_into.empty()) return 0;
    const auto* conv = node.record ? graph_.As<ConvolutionOp>(id) : nullptr;
    const bool fused = &node != planned_.at(id);
    const Layout reading = fused       ? layouts_[id].in
                           : !conv     ? Order(id)
                           : slot == 0 ? layouts_[id].in
                                       : layouts_[id].out;
    TensorRead read{.tensor = input,
                    .reader = id,
                    .written = of_caller ? Ownership{} : owners_.at(input),
                    .from = layouts_[input].out,
                    .owner = owners_.at(id).owner};
    if (slot == 0 && conv) read.conv = &conv->workload();
    if (slot == 0 && fused && !conv) read.conv = &node.record->workload;
    read.moved = MustFillSlice(graph_, slices_, {id, slot}, reading);
    read.to = TensorLayout(graph_.node(input), InputOrder(graph_.node(id), reading));
    return crossings_.ReadSeconds(read);
  }

  const Graph& graph_;
  const Corrections& corrections_;
  Plan& plan_;
  const std::vector<LayoutPair> layouts_;
  const Slices slices_;
  Crossings& crossings_;
  std::map<NodeId, NodePlan*> planned_;
  Owners owners_;
};

class Transforms {
 public:
  Transforms(const Graph& graph, CostSource& costs, const Corrections& corrections, Crossings& crossings,
             ChargedCrossings::Owners owners, Plan& plan)
      : graph_(graph),
        costs_(costs),
        corrections_(corrections),
        crossings_(crossings),
        owners_(std::move(owners)),
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
    Add(id, from, to, costs_.TransformSeconds(node.shape, from, to));
  }

  void Fill(NodeId id, const Layout& to) {
    const Node& node = graph_.node(id);
    const Layout from = SameForm(node.shape, layouts_[id].out, to) ? to : layouts_[id].out;
    Add(id, from, to, FillSeconds(node.shape, from, to, costs_));
  }

  void Add(NodeId id, const Layout& from, const Layout& to, double stand_alone) {
    const Node& tensor = graph_.node(id);
    const auto written = owners_.find(id);
    const double crossing = written == owners_.end()
                                ? 0
                                : corrections_.ConversionScale(tensor.name) *
                                      crossings_.ConversionSeconds(id, from, to, written->second);
    const double seconds = corrections_.ConversionSeconds(tensor, from, to, stand_alone) + crossing;
    const bool estimate =
        costs_.IsInterpolated(tensor.shape, from, to) && !corrections_.HasMeasured(tensor, from, to);
    plan_.transforms.push_back({tensor.name, from, to, seconds, estimate, crossing});
  }

  const Graph& graph_;
  CostSource& costs_;
  const Corrections& corrections_;
  Crossings& crossings_;
  const ChargedCrossings::Owners owners_;
  Plan& plan_;
  const std::vector<LayoutPair> layouts_;
  std::set<NodeId> without_tensor_;  // what they compute never leaves the kernel they are fused into
};

}  // namespace

void PricePlan(const Graph& graph, CostSource& costs, Plan& plan, const Corrections& corrections,
               const CorePlacement& at) {
  plan.transforms.clear();
  Crossings crossings(graph, costs, plan.target, plan.threads, false, at);
  PriceNodes(graph, costs, corrections, crossings, plan);
  ChargedCrossings::Owners owners;
  if (crossings.priced()) owners = ChargedCrossings(graph, corrections, crossings, plan).AddAll();
  Transforms(graph, costs, corrections, crossings, std::move(owners), plan).AddAll();
  plan.predicted_seconds = 0;
  for (const NodePlan& node : plan.nodes) plan.predicted_seconds += node.predicted_seconds;
  for (const TransformPlan& transform : plan.transforms)
    plan.predicted_seconds += transform.predicted_seconds;
}

void PriceWhereMeasured(const Graph& graph, CostSource& costs, Plan& plan, const Corrections& corrections,
                        const CorePlacement& placement) {
  plan.placement = placement;
  PricePlan(graph, costs, plan, corrections, placement);
  PredictAtDistances(graph, costs, plan, corrections);
}

void PredictAtDistances(const Graph& graph, CostSource& costs, Plan& plan, const Corrections& corrections) {
  plan.at_distances.clear();
  const std::vector<CrossingPrices::Distance> distances = costs.PricesOfCrossing().distances();
  if (distances.size() <= 1) return;
  Plan moved = plan;
  for (const CrossingPrices::Distance& distance : distances) {
    const CorePlacement at = {distance.barrier_seconds, plan.placement.arithmetic_seconds};
    PricePlan(graph, costs, moved, corrections, at);
    plan.at_distances.push_back({at, moved.predicted_seconds});
  }
}

}  // namespace tilesmith
