#include "graph_tuner/solvers/pairwise_costs.h"

#include <cstdint>

#include "layouts/base/check.h"

namespace tilesmith {

PairwiseCosts CostsOf(const ReducedProblem& problem) {
  PairwiseCosts costs;
  for (int var = 0; var < problem.size(); ++var) {
    TILESMITH_CHECK(problem.options(var).size() <= UINT16_MAX, "{} options", problem.options(var).size());
    costs.unary.push_back(problem.unary(var));
  }
  for (const ReducedProblem::Edge& edge : problem.edges())
    if (edge.alive) costs.edges.push_back({edge.a, edge.b, edge.costs});
  return costs;
}

std::vector<int> OptionCounts(const PairwiseCosts& costs) {
  std::vector<int> counts;
  counts.reserve(costs.unary.size());
  for (int var = 0; var < costs.size(); ++var) counts.push_back(costs.Options(var));
  return counts;
}

std::vector<std::vector<int>> EdgesOf(const PairwiseCosts& costs) {
  std::vector<std::vector<int>> edges_of(costs.unary.size());
  for (size_t e = 0; e < costs.edges.size(); ++e) {
    edges_of[static_cast<size_t>(costs.edges[e].a)].push_back(static_cast<int>(e));
    edges_of[static_cast<size_t>(costs.edges[e].b)].push_back(static_cast<int>(e));
  }
  return edges_of;
}

EliminationOrder ChooseEliminationOrder(const PairwiseCosts& costs) {
  std::vector<std::vector<int>> neighbours(costs.unary.size());
  for (const PairwiseEdge& edge : costs.edges) {
    neighbours[static_cast<size_t>(edge.a)].push_back(edge.b);
    neighbours[static_cast<size_t>(edge.b)].push_back(edge.a);
  }
  return ChooseEliminationOrder(neighbours, OptionCounts(costs));
}

}  // namespace tilesmith
