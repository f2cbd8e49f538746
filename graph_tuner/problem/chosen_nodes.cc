#include <algorithm>

#include "graph_tuner/problem/build_problem.h"
#include "layouts/base/check.h"
#include "ops/base/quantization.h"

namespace tilesmith {

double ConvPrice::Of(const std::string& conv, const Record& record) const {
  const double squares = seconds_per_square > 0 ? errors->Of(conv, record) : 0;
  return weights.Of(record) + seconds_per_square * squares;
}

TolerantLayouts LayoutsOf(const Graph& graph, const Candidates& candidates) {
  TolerantLayouts layouts{{Layout::Nchw()}, {}};
  auto add = [&](const Layout& layout) {
    if (std::find(layouts.all.begin(), layouts.all.end(), layout) == layouts.all.end())
      layouts.all.push_back(layout);
  };
  // Tensors of bytes have their own type in every layout (TensorLayout).
  const auto order = [](const Layout& layout) {
    return IsByte(layout.type()) ? layout.WithType(DataType::kF32) : layout;
  };
  for (const auto& [workload, records] : candidates) {
    for (const Record& record : records) {
      add(order(record.layouts.in));
      add(order(record.layouts.out));
    }
  }
  for (Graph::NodeId id = 0; id < graph.size(); ++id)
    if (const std::optional<Layout> layout = graph.node(id).op->DefaultLayout()) add(*layout);
  std::sort(layouts.all.begin() + 1, layouts.all.end());
  return layouts;
}

std::vector<NodePlan> ChosenNodes(const Graph& graph, const BuiltProblem& built,
                                  const Assignment& assignment) {
  std::vector<NodePlan> nodes;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const std::string_view type = graph.node(id).op->Type();
    if (type == "Constant" || type == "Input") continue;
    const NodeVariables& vars = built.nodes[id];
    const auto in = static_cast<size_t>(assignment[*vars.in]),
               out = static_cast<size_t>(assignment[*vars.out]);
    NodePlan plan;
    plan.node = graph.node(id).name;
    plan.op_type = type;
    if (!vars.out_layouts[out]) {
      plan.fused_into = graph.node(graph.Consumers(id).at(0)).name;
      nodes.push_back(std::move(plan));
      continue;
    }
    plan.split = vars.out_owners[out].split;
    if (vars.records.empty()) {
      plan.layouts = NodeLayouts(graph, id, *vars.in_layouts[in], *vars.out_layouts[out]);
    } else {
      const Record* record = vars.records[in][out];
      TILESMITH_CHECK(record, "{} has no candidate for the chosen layouts", plan.node);
      plan.record = *record;
      plan.layouts = record->layouts;
    }
    nodes.push_back(std::move(plan));
  }
  return nodes;
}

}  // namespace tilesmith
