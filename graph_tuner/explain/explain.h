// Why a plan is as it is: what each option of a node costs, and what the whole network then costs.
//
// An option is forced by leaving the node's variables nothing else, and the problem is solved again, by the
// same solver and as exactly. Everything else adapts to it, so the total is the least of all plans that have
// the option, and that total less the best one is how far off the option is: what it would have to get faster
// by. Both plans are priced term by term, and the terms that differ say why:
//
//     own(L) + what is dearer around it  >  own(best) + what was dearer around that.
//
// Values only, nothing is printed. As thread-safe as the cost source. Source: original.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/explain/node_choices.h"
#include "graph_tuner/problem/network_problem.h"

namespace tilesmith {

// A network with its best plan; the problem outlives it.
struct SolvedNetwork {
  const NetworkProblem& problem;
  PricedProblem priced;
  Assignment assignment;
  Plan best;

  const Graph& graph() const { return problem.graph(); }
  const BuiltProblem& built() const { return priced.built; }
};

// Throws Error(kNoCandidate) when the solver refuses, as everything below does.
SolvedNetwork SolveNetwork(const NetworkProblem& problem, const Corrections& corrections = {});

enum class TermKind {
  kNode,             // the explained node itself, what it waits for aside
  kCrossing,         // what it waits for since other threads hold what it reads and writes
  kInputTransform,   // of a tensor that its kernel reads, for whichever consumer: transforms are shared
  kOutputTransform,  // of the tensor it writes
  kOtherNode,
  kOtherCrossing,
  kOtherTransform,
};

// One thing that two plans charge differently.
struct CostTerm {
  TermKind kind = TermKind::kOtherNode;
  std::string node;  // of a transform, the one that produces the tensor
  // In the first plan and in the second: what the node reads and writes, absent where the conv behind it
  // computes it as well; or from what to what a transform leads, absent in the plan that has no such one.
  std::optional<LayoutPair> first, second;
  double seconds = 0;  // what the second plan pays more; negative where it pays less
  Split first_split = Split::kEven, second_split = Split::kEven;  // of nodes
};

// All terms that differ: that of `node` itself, always there, and what it waits for; transforms of what it
// reads; of what it writes; then the rest, the largest difference first. Without a node all are the rest.
// They add up to the difference of the totals. Preconditions: both are priced plans of `graph`; the plans
// have the node.
std::vector<CostTerm> Differences(const Graph& graph, const Plan& first, const Plan& second,
                                  std::optional<Graph::NodeId> node);

// One way to compute a node, and what follows from it.
struct ExplainedChoice {
  NodeChoice choice;
  NodePlan schedule;            // its own cost is predicted_seconds
  NodePlan kernel;              // that computes it: itself, or the conv that it is fused into
  double total_seconds = 0;     // the least of all plans that have it
  std::vector<CostTerm> terms;  // from the best plan to the one with that total
};

// Precondition: one of ChoicesOf(network.built(), node), of a node that plans have.
ExplainedChoice ExplainChoice(const SolvedNetwork& network, Graph::NodeId node, const NodeChoice& choice);

// All choices there are: the best plan's, then by total. One solution each.
std::vector<ExplainedChoice> ExplainNode(const SolvedNetwork& network, Graph::NodeId node);

// The first of these in ExplainNode's order, found with one solution. Precondition: `allowed` is not empty.
ExplainedChoice BestOf(const SolvedNetwork& network, Graph::NodeId node,
                       const std::vector<NodeChoice>& allowed);
// The best of all choices but the best plan's; nullopt when there is no other.
std::optional<ExplainedChoice> RunnerUp(const SolvedNetwork& network, Graph::NodeId node);

// The best plan that has all of these choices.
Plan BestPlanWith(const SolvedNetwork& network, const std::vector<FixedNode>& fixed);

// A node that two plans compute in different layouts.
struct NodeChange {
  NodePlan best, here;
};

struct RankedPlan {
  Plan plan;
  std::vector<NodeChange> changes;  // against network.best, in graph order
};

// The `count` cheapest plans that differ pairwise in a node's choice, cheapest first; fewer where there are
// no more. Of plans as good as network.best, any may come first. Throws Error(kNoCandidate) when the problem
// is too large (k_best.h).
std::vector<RankedPlan> BestPlans(const SolvedNetwork& network, int count);

}  // namespace tilesmith
