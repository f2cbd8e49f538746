#include "graph_tuner/executor/heuristic_plan.h"

#include <algorithm>

#include "graph_tuner/executor/program.h"
#include "graph_tuner/executor/schedule.h"
#include "graph_tuner/plan/default_record.h"
#include "layouts/base/check.h"
#include "ops/base/input.h"
#include "ops/conv/conv.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

bool IsConstant(const Op& op) { return dynamic_cast<const ConstantOp*>(&op) != nullptr; }

// The layout of the first input that is computed, when the op runs in it.
Layout InheritedLayout(const Graph& graph, NodeId id, const std::vector<Layout>& layouts) {
  const Op& op = *graph.node(id).op;
  for (const NodeId input : graph.Inputs(id)) {
    if (IsConstant(*graph.node(input).op)) continue;
    return op.RunsIn(layouts[input], graph.InputShapes(id)) ? layouts[input] : Layout::Nchw();
  }
  return Layout::Nchw();
}

std::vector<TransformPlan> NeededTransforms(const Graph& graph, const Plan& plan, const CpuInfo& cpu) {
  const std::vector<NodeSchedule> schedules = ResolveSchedules(graph, plan, cpu);
  const Program program = BuildProgram(graph, schedules);
  std::vector<TransformPlan> transforms;
  for (const Step& step : program.steps) {
    if (step.kind != StepKind::kTransform) continue;
    const Layout& from = program.values[step.reads[0]].layout;
    const Layout& to = program.values[step.write].layout;
    const std::string& tensor = graph.node(step.node).name;
    const bool known = std::any_of(transforms.begin(), transforms.end(), [&](const TransformPlan& other) {
      return other.tensor == tensor && other.from == from && other.to == to;
    });
    if (!known) transforms.push_back({tensor, from, to, 0});
  }
  return transforms;
}

}  // namespace

Plan HeuristicPlan(const Graph& graph, const CpuInfo& cpu, int threads) {
  Plan plan;
  plan.network = graph.name();
  plan.graph_hash = GraphHash(graph);
  plan.target = cpu;
  plan.threads = threads;
  plan.solver = "heuristic";
  plan.certificate = "none";
  std::vector<Layout> layouts(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (dynamic_cast<const InputOp*>(node.op.get()) != nullptr || IsConstant(*node.op)) continue;
    NodePlan node_plan;
    node_plan.node = node.name;
    node_plan.op_type = node.op->Type();
    if (const auto* conv = dynamic_cast<const ConvOp*>(node.op.get())) {
      node_plan.record = DefaultRecord(conv->workload(), cpu, threads);
      node_plan.layouts = node_plan.record->layouts;
    } else if (node.op->IsView()) {
      const ViewLayouts view = node.op->LayoutsOfView();
      node_plan.layouts = {view.in, view.out};
    } else {
      const Layout layout = InheritedLayout(graph, id, layouts);
      node_plan.layouts = {layout, layout};
    }
    layouts[id] = node_plan.layouts.out;
    plan.nodes.push_back(std::move(node_plan));
  }
  plan.transforms = NeededTransforms(graph, plan, cpu);
  return plan;
}

}  // namespace tilesmith
