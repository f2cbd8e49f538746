#include "graph_tuner/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/solvers/k_best.h"
#include "layouts/base/error.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

std::optional<LayoutPair> OwnLayouts(const NodePlan& node) {
  return node.fused_into.empty() ? std::optional(node.layouts) : std::nullopt;
}

constexpr double kSecondsRounding = 1e-15;  // seconds, of sums and differences

void AddNodeTerms(const Plan& first, const Plan& second, const std::string& about,
                  std::vector<CostTerm>& terms) {
  for (size_t i = 0; i < first.nodes.size(); ++i) {
    const NodePlan &a = first.nodes[i], &b = second.nodes[i];
    const bool itself = a.node == about;
    const double crossing = b.crossing_seconds - a.crossing_seconds;
    double own = b.predicted_seconds - a.predicted_seconds - crossing;
    if (std::abs(own) < kSecondsRounding) own = 0;
    const auto add = [&](TermKind kind, double seconds) {
      terms.push_back({kind, a.node, OwnLayouts(a), OwnLayouts(b), seconds, a.split, b.split});
    };
    if (itself || own != 0) add(itself ? TermKind::kNode : TermKind::kOtherNode, own);
    if (crossing != 0) add(itself ? TermKind::kCrossing : TermKind::kOtherCrossing, crossing);
  }
}

// What either plan pays for one transform, which it may need more than once.
struct TransformCharge {
  std::optional<LayoutPair> first, second;
  double first_seconds = 0, second_seconds = 0;
};
// The keys are tensor and layouts; two names of one form are one.
using TransformCharges = std::map<std::tuple<NodeId, Layout, Layout>, TransformCharge>;

TransformCharges ChargesOf(const Graph& graph, const Plan& first, const Plan& second) {
  TransformCharges charges;
  const auto charge_of = [&](const TransformPlan& transform) -> TransformCharge& {
    const NodeId tensor = graph.Find(transform.tensor).value();
    const Shape& shape = graph.node(tensor).shape;
    const auto form = [&](const Layout& layout) {
      return shape.size() <= 4 ? CanonicalLayout(shape, layout) : layout;
    };
    return charges[{tensor, form(transform.from), form(transform.to)}];
  };
  for (const TransformPlan& transform : first.transforms) {
    TransformCharge& charge = charge_of(transform);
    charge.first = LayoutPair{transform.from, transform.to};
    charge.first_seconds += transform.predicted_seconds;
  }
  for (const TransformPlan& transform : second.transforms) {
    TransformCharge& charge = charge_of(transform);
    charge.second = LayoutPair{transform.from, transform.to};
    charge.second_seconds += transform.predicted_seconds;
  }
  return charges;
}

// The tensors that the node's kernel reads in either plan: where another node is computed in front of it,
// those of that one.
std::vector<NodeId> TensorsRead(const Graph& graph, const Plan& first, const Plan& second, NodeId node) {
  std::vector<NodeId> read = graph.Inputs(node);
  for (const Plan* plan : {&first, &second}) {
    for (const NodePlan& other : plan->nodes) {
      if (other.fused_into != graph.node(node).name) continue;
      const std::vector<NodeId> inputs = graph.Inputs(graph.Find(other.node).value());
      read.insert(read.end(), inputs.begin(), inputs.end());
    }
  }
  return read;
}

ExplainedChoice Explained(const SolvedNetwork& network, const FixedNode& fixed, const Plan& plan) {
  const NodePlan& schedule = NodePlanOf(network.graph(), plan, fixed.node);
  return {fixed.choice, schedule, KernelOf(plan, schedule), plan.predicted_seconds,
          Differences(network.graph(), network.best, plan, fixed.node)};
}

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

SolvedNetwork SolveNetwork(const NetworkProblem& problem, const Corrections& corrections) {
  SolvedProblem solved = problem.Solve(corrections);
  Plan best = problem.PlanOf(solved.priced, solved.solution);
  return {problem, std::move(solved.priced), std::move(solved.solution.assignment), std::move(best)};
}

std::vector<CostTerm> Differences(const Graph& graph, const Plan& first, const Plan& second,
                                  std::optional<NodeId> node) {
  std::vector<CostTerm> terms;
  AddNodeTerms(first, second, node ? graph.node(*node).name : "", terms);
  const std::vector<NodeId> read = node ? TensorsRead(graph, first, second, *node) : std::vector<NodeId>();
  for (const auto& [key, charge] : ChargesOf(graph, first, second)) {
    const double seconds = charge.second_seconds - charge.first_seconds;
    if (seconds == 0) continue;
    const NodeId tensor = std::get<NodeId>(key);
    const bool is_read = std::ranges::find(read, tensor) != read.end();
    const TermKind kind = node == tensor ? TermKind::kOutputTransform
                          : is_read      ? TermKind::kInputTransform
                                         : TermKind::kOtherTransform;
    terms.push_back({kind, graph.node(tensor).name, charge.first, charge.second, seconds});
  }
  const auto order = [](const CostTerm& term) {
    return std::pair(std::min(term.kind, TermKind::kOtherNode), -std::abs(term.seconds));
  };
  std::ranges::stable_sort(terms, {}, order);
  return terms;
}

ExplainedChoice ExplainChoice(const SolvedNetwork& network, NodeId node, const NodeChoice& choice) {
  // Other plans may be as good as the best; of its own choices it is the one.
  if (choice == ChosenBy(network.built(), network.assignment, node))
    return Explained(network, {node, choice}, network.best);
  return Explained(network, {node, choice}, BestPlanWith(network, {{node, choice}}));
}

std::vector<ExplainedChoice> ExplainNode(const SolvedNetwork& network, NodeId node) {
  const NodeChoice best = ChosenBy(network.built(), network.assignment, node);
  std::vector<ExplainedChoice> explained;
  for (const NodeChoice& choice : ChoicesOf(network.built(), node))
    explained.push_back(ExplainChoice(network, node, choice));
  std::ranges::stable_sort(explained, {}, [&](const ExplainedChoice& option) {
    return std::pair(option.choice != best, option.total_seconds);
  });
  return explained;
}

ExplainedChoice BestOf(const SolvedNetwork& network, NodeId node, const std::vector<NodeChoice>& allowed) {
  const BuiltProblem& built = network.built();
  const NodeChoice best = ChosenBy(built, network.assignment, node);
  if (std::ranges::find(allowed, best) != allowed.end())
    return Explained(network, {node, best}, network.best);
  const Solution solution = network.problem.Solve(WithOneOf(built, node, allowed));
  const Plan plan = network.problem.PlanOf(network.priced, solution);
  return Explained(network, {node, ChosenBy(built, solution.assignment, node)}, plan);
}

std::optional<ExplainedChoice> RunnerUp(const SolvedNetwork& network, NodeId node) {
  std::vector<NodeChoice> others = ChoicesOf(network.built(), node);
  std::erase(others, ChosenBy(network.built(), network.assignment, node));
  return others.empty() ? std::nullopt : std::optional(BestOf(network, node, others));
}

Plan BestPlanWith(const SolvedNetwork& network, const std::vector<FixedNode>& fixed) {
  const Solution solution = network.problem.Solve(WithFixed(network.built(), fixed));
  return network.problem.PlanOf(network.priced, solution);
}

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
