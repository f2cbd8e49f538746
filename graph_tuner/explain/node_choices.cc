#include "graph_tuner/explain/node_choices.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "graph_tuner/costs/layout_forms.h"
#include "layouts/base/check.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// Whether all that the node reads lies the same in both layouts.
bool ReadsSame(const Graph& graph, NodeId node, const Layout& a, const Layout& b) {
  return std::ranges::all_of(graph.InputShapes(node),
                             [&](const Shape& shape) { return SameForm(shape, a, b); });
}

bool AlikeInLayouts(const Record& a, const Record& b) {
  return a.workload == b.workload && SameForm(a.workload.input_shape(), a.layouts.in, b.layouts.in) &&
         SameForm(a.workload.output_shape(), a.layouts.out, b.layouts.out);
}

// Leaves a variable one option, whose cost stays what it was.
void FixOption(LayoutProblem& problem, LayoutProblem::VarId var, int option) {
  for (int other = 0; other < problem.Options(var); ++other)
    if (other != option) problem.AddUnary(var, other, kForbidden);
}

}  // namespace

std::vector<NodeChoice> ChoicesOf(const BuiltProblem& built, NodeId node) {
  const NodeVariables& vars = built.nodes[node];
  std::vector<NodeChoice> choices;
  if (!vars.in) return choices;
  const LayoutProblem& problem = built.problem;
  const int ins = problem.Options(*vars.in), outs = problem.Options(*vars.out);
  if (vars.in == vars.out) {
    for (int i = 0; i < ins; ++i)
      if (!std::isinf(problem.variable(*vars.in).costs[static_cast<size_t>(i)])) choices.push_back({i, i});
    return choices;
  }
  const auto [edge, exists] = boost::edge(*vars.in, *vars.out, problem.boost());
  TILESMITH_CHECK(exists, "{} has no candidates", problem.variable(*vars.in).name);
  const CostMatrix& seconds = problem.boost()[edge];
  const bool rows_are_in = *vars.in < *vars.out;
  for (int i = 0; i < ins; ++i)
    for (int j = 0; j < outs; ++j)
      if (!std::isinf(rows_are_in ? seconds.at(i, j) : seconds.at(j, i))) choices.push_back({i, j});
  return choices;
}

NodeChoice ChosenBy(const BuiltProblem& built, const Assignment& assignment, NodeId node) {
  const NodeVariables& vars = built.nodes[node];
  return {assignment[vars.in.value()], assignment[vars.out.value()]};
}

std::optional<NodeChoice> ChosenBy(const Graph& graph, const BuiltProblem& built, const Plan& plan,
                                   NodeId node) {
  const NodePlan& planned = NodePlanOf(graph, plan, node);
  const bool fused = !planned.fused_into.empty();
  // Computed by the conv behind it, a node reads what that conv's kernel reads.
  const NodePlan& computed = fused ? NodePlanOf(graph, plan, graph.Consumers(node).at(0)) : planned;
  const Layout in = computed.layouts.in;
  const NodeVariables& vars = built.nodes[node];
  const auto is_planned = [&](const NodeChoice& choice) {
    const auto i = static_cast<size_t>(choice.in), j = static_cast<size_t>(choice.out);
    const Record* record = vars.records.empty() ? nullptr : vars.records[i][j];
    if (record) return planned.record && AlikeInLayouts(*record, *planned.record);
    if (planned.record || vars.out_layouts[j].has_value() == fused) return false;
    return vars.in_layouts[i] && ReadsSame(graph, node, *vars.in_layouts[i], in) &&
           (fused || SameForm(graph.node(node).shape, *vars.in_layouts[i], in));
  };
  // Of several options it is the one that is dealt as the plan says, and has its record.
  const auto likeness = [&](const NodeChoice& choice) {
    const auto i = static_cast<size_t>(choice.in), j = static_cast<size_t>(choice.out);
    const Split split = vars.out_owners[j].split;
    const bool dealt = split == computed.split || (computed.split == Split::kEven && vars.as_even[i][j]);
    const Record* record = vars.records.empty() ? nullptr : vars.records[i][j];
    const bool same = record && planned.record && record->template_name == planned.record->template_name &&
                      record->config == planned.record->config;
    return 2 * dealt + same;
  };
  std::vector<NodeChoice> choices = ChoicesOf(built, node);
  std::erase_if(choices, std::not_fn(is_planned));
  const auto found = std::ranges::max_element(choices, {}, likeness);
  return found == choices.end() ? std::nullopt : std::optional(*found);
}

const NodePlan& NodePlanOf(const Graph& graph, const Plan& plan, NodeId node) {
  const auto found = std::ranges::find(plan.nodes, graph.node(node).name, &NodePlan::node);
  TILESMITH_CHECK(found != plan.nodes.end(), "the plan has no node {}", graph.node(node).name);
  return *found;
}

NodePlan KernelOf(const Plan& plan, const NodePlan& node) {
  if (node.fused_into.empty()) return node;
  const auto found = std::ranges::find(plan.nodes, node.fused_into, &NodePlan::node);
  TILESMITH_CHECK(found != plan.nodes.end(), "the plan has no node {}", node.fused_into);
  return *found;
}

LayoutProblem WithFixed(const BuiltProblem& built, const std::vector<FixedNode>& fixed) {
  LayoutProblem problem = built.problem;
  for (const auto& [node, choice] : fixed) {
    const NodeVariables& vars = built.nodes[node];
    FixOption(problem, vars.in.value(), choice.in);
    if (vars.in != vars.out) FixOption(problem, vars.out.value(), choice.out);
  }
  return problem;
}

LayoutProblem WithOneOf(const BuiltProblem& built, NodeId node, const std::vector<NodeChoice>& allowed) {
  LayoutProblem problem = built.problem;
  const NodeVariables& vars = built.nodes[node];
  const LayoutProblem::VarId in = vars.in.value(), out = vars.out.value();
  const auto is_allowed = [&](const NodeChoice& choice) {
    return std::ranges::find(allowed, choice) != allowed.end();
  };
  if (in == out) {
    for (int i = 0; i < problem.Options(in); ++i)
      if (!is_allowed({i, i})) problem.AddUnary(in, i, kForbidden);
    return problem;
  }
  CostMatrix forbidden(problem.Options(in), problem.Options(out));
  for (int i = 0; i < forbidden.rows; ++i)
    for (int j = 0; j < forbidden.cols; ++j)
      if (!is_allowed({i, j})) forbidden.at(i, j) = kForbidden;
  problem.AddPairwise(in, out, forbidden);
  return problem;
}

bool HasLayout(const ConvWorkload& workload, const LayoutPair& layouts, const Layout& layout) {
  return SameForm(workload.input_shape(), layouts.in, layout) ||
         SameForm(workload.output_shape(), layouts.out, layout);
}

bool HasLayout(const Graph& graph, const BuiltProblem& built, const FixedNode& fixed, const Layout& layout) {
  const NodeVariables& vars = built.nodes[fixed.node];
  const auto i = static_cast<size_t>(fixed.choice.in), j = static_cast<size_t>(fixed.choice.out);
  const Record* record = vars.records.empty() ? nullptr : vars.records[i][j];
  if (record) return HasLayout(record->workload, record->layouts, layout);
  const std::vector<Shape> inputs = graph.InputShapes(fixed.node);
  const auto same = [&](const Shape& shape, const std::optional<Layout>& mine) {
    return mine && SameForm(shape, *mine, layout);
  };
  return same(graph.node(fixed.node).shape, vars.out_layouts[j]) ||
         (!inputs.empty() && same(inputs[0], vars.in_layouts[i]));
}

}  // namespace tilesmith
