// The costs of a layout problem as plain tables, for those who rewrite them: bounds, reductions, search.
#pragma once

#include <vector>

#include "graph_tuner/solvers/layout_problem.h"
#include "graph_tuner/solvers/solve_order.h"
#include "graph_tuner/solvers/solve_reduce.h"

namespace tilesmith {

struct PairwiseEdge {
  int a = 0, b = 0;  // rows are a's options
  CostMatrix costs;
  int Other(int var) const { return var == a ? b : a; }
  // The cost of `var`'s option and the other end's.
  double At(int var, int option, int other_option) const {
    return var == a ? costs.at(option, other_option) : costs.at(other_option, option);
  }
};

// An assignment, one option per variable, costs the sum of its unary and its edges' entries. No two edges
// join the same variables.
struct PairwiseCosts {
  std::vector<std::vector<double>> unary;
  std::vector<PairwiseEdge> edges;

  int size() const { return static_cast<int>(unary.size()); }
  int Options(int var) const { return static_cast<int>(unary[static_cast<size_t>(var)].size()); }
};

PairwiseCosts CostsOf(const ReducedProblem& problem);
std::vector<int> OptionCounts(const PairwiseCosts& costs);
// The indices of each variable's edges.
std::vector<std::vector<int>> EdgesOf(const PairwiseCosts& costs);
EliminationOrder ChooseEliminationOrder(const PairwiseCosts& costs);

}  // namespace tilesmith
