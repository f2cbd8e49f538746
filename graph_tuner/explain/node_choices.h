// The options of a node of the network, out of the options of its variables: what explanations compare, and
// what they fix to see what follows.
#pragma once

#include <optional>
#include <vector>

#include "graph_tuner/problem/build_problem.h"

namespace tilesmith {

// An option of each of the node's two variables; for every op but conv they are one.
struct NodeChoice {
  int in = 0, out = 0;
  bool operator==(const NodeChoice&) const = default;
};

struct FixedNode {
  Graph::NodeId node = 0;
  NodeChoice choice;
};

// What the problem allows, by in, then by out; nothing for constants.
std::vector<NodeChoice> ChoicesOf(const BuiltProblem& built, Graph::NodeId node);

// Precondition: the node is no constant.
NodeChoice ChosenBy(const BuiltProblem& built, const Assignment& assignment, Graph::NodeId node);

// What a plan of the same network, from whatever log, has for a node; nullopt where the problem lacks that,
// having no candidate for the plan's layouts. Precondition: the plan has the node.
std::optional<NodeChoice> ChosenBy(const Graph& graph, const BuiltProblem& built, const Plan& plan,
                                   Graph::NodeId node);

// Precondition: the plan has the node.
const NodePlan& NodePlanOf(const Graph& graph, const Plan& plan, Graph::NodeId node);

// The conv that the node is fused into, or itself. Precondition: the plan has it.
NodePlan KernelOf(const Plan& plan, const NodePlan& node);

// The problem with these nodes decided. Its solutions are those of `built` that have these choices, at the
// same costs.
LayoutProblem WithFixed(const BuiltProblem& built, const std::vector<FixedNode>& fixed);
// The problem with one node confined to some of its choices.
LayoutProblem WithOneOf(const BuiltProblem& built, Graph::NodeId node,
                        const std::vector<NodeChoice>& allowed);

// Whether the layouts are those of a schedule that reads or writes `layout`; whether a node's choice is.
bool HasLayout(const ConvWorkload& workload, const LayoutPair& layouts, const Layout& layout);
bool HasLayout(const Graph& graph, const BuiltProblem& built, const FixedNode& fixed, const Layout& layout);

}  // namespace tilesmith
