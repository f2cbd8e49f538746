#include "graph_tuner/explain/best_plans.h"

#include <fmt/format.h>

#include "graph_tuner/solvers/k_best.h"
#include "layouts/base/error.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// Which variables are a node's: the others say which transforms are made, and follow from these.
std::vector<bool> NodeVariablesOf(const BuiltProblem& built) {
  std::vector<bool> of_nodes(built.problem.size(), false);
  for (const NodeVariables& vars : built.nodes) {
    if (vars.in) of_nodes[*vars.in] = true;
    if (vars.out) of_nodes[*vars.out] = true;
  }
  return of_nodes;
}

std::vector<NodeChange> ChangesOf(const SolvedNetwork& network, const Plan& plan, const Assignment& here) {
  const BuiltProblem& built = network.built();
  std::vector<NodeChange> changes;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const NodeId node = network.graph().Find(plan.nodes[i].node).value();
    if (ChosenBy(built, here, node) != ChosenBy(built, network.assignment, node))
      changes.push_back({network.best.nodes[i], plan.nodes[i]});
  }
  return changes;
}

}  // namespace

std::vector<RankedPlan> BestPlans(const SolvedNetwork& network, int count) {
  const BuiltProblem& built = network.built();
  const std::vector<bool> of_nodes = NodeVariablesOf(built);
  const auto matters = [&](LayoutProblem::VarId var) { return bool(of_nodes[var]); };
  std::vector<RankedPlan> plans;
  for (const Solution& solution :
       SolveKBest(built.problem, count, network.problem.options().limits, matters)) {
    if (!solution.solved())
      throw Error(ErrorCode::kNoCandidate, fmt::format("{}: {}", network.graph().name(), solution.refusal));
    Plan plan = network.problem.PlanOf(network.priced, solution);
    std::vector<NodeChange> changes = ChangesOf(network, plan, solution.assignment);
    plans.push_back({std::move(plan), std::move(changes)});
  }
  return plans;
}

}  // namespace tilesmith
