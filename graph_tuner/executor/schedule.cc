#include "graph_tuner/executor/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "graph_tuner/plan/concat_slices.h"
#include "graph_tuner/plan/plan.h"
#include "layouts/base/check.h"
#include "ops/base/op.h"
#include "ops/conv/conv.h"
#include "ops/dense/tasks.h"
#include "templates/int8/byte_conv.h"
#include "templates/matmul/config.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

[[noreturn]] void BadPlan(const Node& node, const std::string& reason) {
  RefusePlan(fmt::format("node \"{}\": {}", node.name, reason));
}

int RegionOf(const Node& node, const NodePlan& planned, const Plan& plan) {
  if (planned.region < 0 || planned.region > std::ssize(plan.regions))
    BadPlan(node, fmt::format("in region {}, of which the plan says nothing", planned.region));
  return planned.region;
}

void MarkLive(const Graph& graph, std::vector<NodeSchedule>& schedules) {
  for (const NodeId output : graph.outputs()) schedules[output].live = true;
  for (NodeId id = graph.size(); id-- > 0;) {
    if (!schedules[id].live) continue;
    for (const NodeId input : graph.Inputs(id)) schedules[input].live = true;
  }
}

void CheckConfig(const Node& node, const ConvTemplate& conv_template, const NodeSchedule& schedule,
                 const Target& cpu) {
  const Support support = conv_template.Supports(schedule.workload, cpu);
  if (!support.ok) BadPlan(node, fmt::format("template {}: {}", conv_template.Name(), support.reason));
  const std::string invalid = conv_template.Space(schedule.workload, cpu).WhyInvalid(schedule.config);
  if (invalid.empty()) return;
  BadPlan(node, fmt::format("template {}, config {}: {}", conv_template.Name(), schedule.config.ToString(),
                            invalid));
}

// Precondition: schedule.workload is set. `known` are those of nodes that were resolved: what one of them has
// need not be checked again, for networks repeat their convolutions.
void ResolveConv(const Node& node, const NodePlan& plan, const Target& cpu, PlanFrom from,
                 std::span<const NodeSchedule> known, NodeSchedule& schedule) {
  if (!plan.record.has_value()) BadPlan(node, "a convolution without a template and config");
  const ConvTemplate& conv_template = FindConvTemplate(plan.record->template_name);
  schedule.config = plan.record->config;
  const auto is_same = [&](const NodeSchedule& other) {
    return other.conv_template == &conv_template && other.workload == schedule.workload &&
           other.config == schedule.config;
  };
  if (from == PlanFrom::kAnywhere && std::ranges::none_of(known, is_same))
    CheckConfig(node, conv_template, schedule, cpu);
  const LayoutPair layouts = conv_template.Layouts(schedule.workload, schedule.config);
  if (layouts != plan.layouts) {
    BadPlan(node,
            fmt::format("layouts {} -> {}, but its config computes {} -> {}", plan.layouts.in.ToString(),
                        plan.layouts.out.ToString(), layouts.in.ToString(), layouts.out.ToString()));
  }
  schedule.conv_template = &conv_template;
  schedule.out = layouts.out;
  schedule.inputs = {layouts.in};
  if (schedule.workload.post.sum) schedule.inputs.push_back(layouts.out);
}

// A product with the schedule of its record.
OpPtr Tuned(const Graph& graph, NodeId id, const MatMulOp& op, const Record& record, const Target& cpu) {
  const Node& node = graph.node(id);
  const std::optional<ConvWorkload> workload = ProductOf(op, graph.InputShapes(id));
  if (!workload || record.template_name != MatMulTemplate().Name())
    BadPlan(node, fmt::format("template {} computes no products", record.template_name));
  const std::string invalid = MatMulTemplate().Space(*workload, cpu).WhyInvalid(record.config);
  if (!invalid.empty()) BadPlan(node, fmt::format("config {}: {}", record.config.ToString(), invalid));
  MatMulParams params = op.params();
  params.schedule = MatMulScheduleOf(record.config);
  return std::make_shared<MatMulOp>(std::move(params));
}

void ResolveOp(const Graph& graph, NodeId id, const NodePlan& plan, NodeSchedule& schedule) {
  const Node& node = graph.node(id);
  const auto read = [&](const Layout& layout) {
    for (const NodeId input : graph.Inputs(id))
      schedule.inputs.push_back(TensorLayout(graph.node(input), layout));
  };
  schedule.out = plan.layouts.out;
  if (node.op->IsView()) {
    const ViewLayouts view = node.op->LayoutsOfView();
    const LayoutPair wanted = NodeLayouts(graph, id, view.in, view.out);
    if (plan.layouts != wanted) {
      BadPlan(node, fmt::format("{} is a view of {} as {}", node.op->Type(), wanted.in.ToString(),
                                wanted.out.ToString()));
    }
    return read(view.in);
  }
  const Layout layout = InputOrder(node, plan.layouts.out);
  if (plan.layouts != NodeLayouts(graph, id, layout, layout))
    BadPlan(node, fmt::format("{} cannot change layouts", node.op->Type()));
  if (!NodeRunsIn(graph, id, layout)) {
    BadPlan(node, fmt::format("{} does not run in {}", node.op->Type(), plan.layouts.out.ToString()));
  }
  read(layout);
  // In a region a concat is rows like any other tensor.
  schedule.sliced = plan.region == 0 && node.op->Type() == "Concat" && ConcatIsSliceable(graph, id, layout);
}

// What networks repeat, by workload and layout.
using UntunedConvs = std::map<std::pair<std::string, Layout>, std::optional<UntunedConv>>;

// A convolution of bytes without a record, whose layouts are resolved, takes a template's default in them.
// What no template computes stays an op.
void ResolveUntuned(const ConvWorkload& workload, const Target& cpu, UntunedConvs& known,
                    NodeSchedule& schedule) {
  const auto [found, is_new] = known.try_emplace({WorkloadToString(workload), schedule.out});
  if (is_new) found->second = UntunedByteConv(workload, schedule.out, cpu);
  if (!found->second) return;
  schedule.conv_template = found->second->conv_template;
  schedule.config = found->second->config;
  schedule.workload = workload;
}

}  // namespace

std::vector<NodeSchedule> ResolveSchedules(const Graph& graph, const Plan& plan, const Target& cpu,
                                           PlanFrom from) {
  std::map<std::string_view, const NodePlan*> planned;
  for (const NodePlan& node : plan.nodes) planned[node.node] = &node;
  const FusedNodes fused = FindFusedNodes(graph, plan);
  std::vector<NodeSchedule> schedules(graph.size());
  UntunedConvs untuned;
  MarkLive(graph, schedules);
  for (const Layout& layout : {plan.ends.inputs, plan.ends.outputs}) {
    if (layout.type() == DataType::kF32) continue;
    RefusePlan(fmt::format("its inputs or outputs are in {}, but floats are not converted to other types",
                           layout.ToString()));
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    NodeSchedule& schedule = schedules[id];
    if (!schedule.live) continue;
    const Node& node = graph.node(id);
    if (node.op->Type() == "Input") schedule.out = EndLayout(node, plan.ends.inputs);
    if (graph.IsSource(id)) continue;
    const auto found = planned.find(node.name);
    if (found == planned.end()) BadPlan(node, "missing");
    schedule.predicted_seconds = found->second->predicted_seconds;
    schedule.split = found->second->split;
    schedule.region = RegionOf(node, *found->second, plan);
    if (!found->second->fused_into.empty()) {
      schedule.fused_away = true;
      continue;
    }
    const auto* conv = graph.As<ConvolutionOp>(id);
    if (conv && (found->second->record || NeedsRecord(conv->workload()))) {
      const auto pair = fused.find(id);
      schedule.workload = pair != fused.end() ? pair->second.workload : conv->workload();
      if (pair != fused.end()) schedule.first = pair->second.first;
      ResolveConv(node, *found->second, cpu, from, std::span(schedules).first(id), schedule);
    } else {
      ResolveOp(graph, id, *found->second, schedule);
      if (conv) ResolveUntuned(conv->workload(), cpu, untuned, schedule);
      const auto* product = graph.As<MatMulOp>(id);
      if (product && found->second->record)
        schedule.tuned = Tuned(graph, id, *product, *found->second->record, cpu);
    }
  }
  return schedules;
}

}  // namespace tilesmith
