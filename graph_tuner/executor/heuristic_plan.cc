#include "graph_tuner/executor/heuristic_plan.h"

#include <algorithm>

#include "graph_tuner/executor/program.h"
#include "graph_tuner/executor/schedule.h"
#include "graph_tuner/plan/default_record.h"
#include "layouts/base/check.h"
#include "ops/base/input.h"
#include "ops/conv/conv.h"
#include "templates/base/row_tiles.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

bool IsConstant(const Op& op) { return dynamic_cast<const ConstantOp*>(&op) != nullptr; }

// The op's own, or that of the first input that is computed, when the op runs in it.
Layout LayoutOfOp(const Graph& graph, NodeId id, const std::vector<Layout>& layouts) {
  if (const auto layout = graph.node(id).op->DefaultLayout()) {
    if (NodeRunsIn(graph, id, *layout)) return *layout;
  }
  for (const NodeId input : graph.Inputs(id)) {
    if (IsConstant(*graph.node(input).op)) continue;
    const Layout layout = layouts[input].WithType(DataType::kF32);
    return NodeRunsIn(graph, id, layout) ? layout : Layout::Nchw();
  }
  return Layout::Nchw();
}

// Whether a conv reads the rows of a dense layer (LowerDense) where they are, that is, in NHWC.
bool ReadsRows(const Graph& graph, NodeId id, const ConvWorkload& w, const std::vector<Layout>& layouts) {
  const NodeId input = graph.Inputs(id)[0];
  const bool arrives =
      layouts[input].is_nhwc() ||
      (graph.node(input).op->IsView() && SameMemory(w.input_shape(), layouts[input], Layout::Nhwc()));
  return w.ih == 1 && CanFlatten(w) && arrives;
}

Record RecordOf(const Graph& graph, NodeId id, const std::vector<Layout>& layouts, const Target& cpu,
                int threads) {
  const ConvWorkload& w = dynamic_cast<const ConvOp&>(*graph.node(id).op).workload();
  Record record = DefaultRecord(w, cpu, threads);
  if (!ReadsRows(graph, id, w, layouts)) return record;
  const ConvTemplate& conv_template = FindConvTemplate(record.template_name);
  const ConfigSpace space = conv_template.Space(w, cpu);
  const LayoutPair rows = {Layout::Nhwc(), Layout::Nhwc()};
  const std::optional<Config> config = conv_template.WithLayouts(w, space, record.config, rows);
  if (config && space.WhyInvalid(*config).empty()) record.config = *config, record.layouts = rows;
  return record;
}

std::vector<TransformPlan> NeededTransforms(const Graph& graph, const Plan& plan, const Target& cpu) {
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

Plan HeuristicPlan(const Graph& graph, const Target& cpu, int threads) {
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
    if (dynamic_cast<const ConvOp*>(node.op.get()) != nullptr) {
      node_plan.record = RecordOf(graph, id, layouts, cpu, threads);
      node_plan.layouts = node_plan.record->layouts;
    } else if (node.op->IsView()) {
      const ViewLayouts view = node.op->LayoutsOfView();
      node_plan.layouts = NodeLayouts(graph, id, view.in, view.out);
    } else {
      const Layout layout = LayoutOfOp(graph, id, layouts);
      node_plan.layouts = NodeLayouts(graph, id, layout, layout);
    }
    layouts[id] = node_plan.layouts.out;
    plan.nodes.push_back(std::move(node_plan));
  }
  plan.transforms = NeededTransforms(graph, plan, cpu);
  return plan;
}

}  // namespace tilesmith
