#include "graph_tuner/executor/schedule.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "graph_tuner/plan/concat_slices.h"
#include "graph_tuner/plan/fused_nodes.h"
#include "layouts/base/check.h"
#include "ops/base/input.h"
#include "ops/conv/conv.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

[[noreturn]] void BadPlan(const Node& node, const std::string& reason) {
  RefusePlan(fmt::format("node \"{}\": {}", node.name, reason));
}

bool IsSource(const Op& op) {
  return dynamic_cast<const InputOp*>(&op) != nullptr || dynamic_cast<const ConstantOp*>(&op) != nullptr;
}

void MarkLive(const Graph& graph, std::vector<NodeSchedule>& schedules) {
  for (const NodeId output : graph.outputs()) schedules[output].live = true;
  for (NodeId id = graph.size(); id-- > 0;) {
    if (!schedules[id].live) continue;
    for (const NodeId input : graph.Inputs(id)) schedules[input].live = true;
  }
}

// Precondition: schedule.workload is set.
void ResolveConv(const Node& node, const NodePlan& plan, const CpuInfo& cpu, NodeSchedule& schedule) {
  if (!plan.record.has_value()) BadPlan(node, "a convolution without a template and config");
  const ConvWorkload& workload = schedule.workload;
  const ConvTemplate& conv_template = FindConvTemplate(plan.record->template_name);
  const Support support = conv_template.Supports(workload, cpu);
  if (!support.ok) BadPlan(node, fmt::format("template {}: {}", conv_template.Name(), support.reason));
  schedule.config = plan.record->config;
  const std::string invalid = conv_template.Space(workload, cpu).WhyInvalid(schedule.config);
  if (!invalid.empty()) {
    BadPlan(node, fmt::format("template {}, config {}: {}", conv_template.Name(), schedule.config.ToString(),
                              invalid));
  }
  const LayoutPair layouts = conv_template.Layouts(workload, schedule.config);
  if (layouts != plan.layouts) {
    BadPlan(node,
            fmt::format("layouts {} -> {}, but its config computes {} -> {}", plan.layouts.in.ToString(),
                        plan.layouts.out.ToString(), layouts.in.ToString(), layouts.out.ToString()));
  }
  schedule.conv_template = &conv_template;
  schedule.out = layouts.out;
  schedule.inputs = {layouts.in};
  if (workload.post.sum) schedule.inputs.push_back(layouts.out);
}

void ResolveOp(const Graph& graph, NodeId id, const NodePlan& plan, NodeSchedule& schedule) {
  const Node& node = graph.node(id);
  const std::vector<Shape> shapes = graph.InputShapes(id);
  const Layout& layout = plan.layouts.in;
  if (node.op->IsView()) {
    const ViewLayouts view = node.op->LayoutsOfView();
    if (plan.layouts != LayoutPair{view.in, view.out}) {
      BadPlan(node, fmt::format("{} is a view of {} as {}", node.op->Type(), view.in.ToString(),
                                view.out.ToString()));
    }
    schedule.out = view.out;
    schedule.inputs.assign(shapes.size(), view.in);
    return;
  }
  if (plan.layouts.out != layout) BadPlan(node, fmt::format("{} cannot change layouts", node.op->Type()));
  if (!node.op->RunsIn(layout, shapes)) {
    BadPlan(node, fmt::format("{} does not run in {}", node.op->Type(), layout.ToString()));
  }
  schedule.out = layout;
  schedule.inputs.assign(shapes.size(), layout);
  schedule.sliced = node.op->Type() == "Concat" && ConcatIsSliceable(graph, id, layout);
}

}  // namespace

std::vector<NodeSchedule> ResolveSchedules(const Graph& graph, const Plan& plan, const CpuInfo& cpu) {
  std::map<std::string_view, const NodePlan*> planned;
  for (const NodePlan& node : plan.nodes) planned[node.node] = &node;
  const FusedNodes fused = FindFusedNodes(graph, plan);
  std::vector<NodeSchedule> schedules(graph.size());
  MarkLive(graph, schedules);
  for (NodeId id = 0; id < graph.size(); ++id) {
    NodeSchedule& schedule = schedules[id];
    if (!schedule.live) continue;
    const Node& node = graph.node(id);
    if (node.type != DataType::kF32) {
      throw Error(ErrorCode::kBadModel,
                  fmt::format("node \"{}\" ({}) is not of floats, and was not folded away at load time",
                              node.name, node.op->Type()));
    }
    if (node.op->Type() == "Input") schedule.out = EndLayout(node, plan.ends.inputs);
    if (IsSource(*node.op)) continue;
    const auto found = planned.find(node.name);
    if (found == planned.end()) BadPlan(node, "missing");
    schedule.predicted_seconds = found->second->predicted_seconds;
    if (!found->second->fused_into.empty()) {
      schedule.fused_away = true;
    } else if (const auto* conv = dynamic_cast<const ConvOp*>(node.op.get())) {
      const auto pair = fused.find(id);
      schedule.workload = pair != fused.end() ? pair->second.workload : conv->workload();
      if (pair != fused.end()) schedule.first = pair->second.first;
      ResolveConv(node, *found->second, cpu, schedule);
    } else {
      ResolveOp(graph, id, *found->second, schedule);
    }
  }
  return schedules;
}

}  // namespace tilesmith
