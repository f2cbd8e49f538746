// The costs of a layout problem as plain tables, for those who rewrite them: bounds, reductions, search.
#pragma once

#include <vector>

#include "graph_tuner/solvers/layout_problem.h"

namespace tilesmith {

// Reductions that keep at least one optimal assignment: what the dynamic program need not look at.

// What an edge's matrix charges for a row whatever the column belongs into the row's unary cost, and the same
// for columns. A matrix with nothing left is no edge.
struct MovedCosts {
  bool any_left = true;
  bool found_forbidden = false;  // a row or column was infinite throughout: now its unary cost is
};
MovedCosts MoveIntoUnary(CostMatrix& costs, std::vector<double>& rows, std::vector<double>& cols);

// A layout problem that shrinks. Options keep the indices of the original problem in `options`; costs and
// matrices are indexed by position in that list.
class ReducedProblem {
 public:
  struct Edge {
    int a = 0, b = 0;  // rows are a's
    CostMatrix costs;
    bool alive = true;
  };

  explicit ReducedProblem(const LayoutProblem& problem);
  // Applies the rules below until none changes anything.
  void Reduce();

  int size() const { return static_cast<int>(options_.size()); }
  const std::vector<int>& options(int var) const { return options_[static_cast<size_t>(var)]; }
  const std::vector<double>& unary(int var) const { return unary_[static_cast<size_t>(var)]; }
  const std::vector<Edge>& edges() const { return edges_; }  // skip those not alive
  // The original problem's options at these positions of the lists above, one for each variable.
  Assignment Original(const std::vector<int>& positions) const;

 private:
  // Edge rule: the function above. Edges at a variable with one option vanish this way. Returns whether that,
  // or a newly forbidden option, can set off other rules.
  bool MoveIntoUnary(Edge& edge);
  // Option rule. Option i of a variable goes when an option j exists such that replacing i by j never costs
  // more, whatever the neighbours choose: unary_j - unary_i + sum_e max_k (e[j][k] - e[i][k]) <= 0.
  bool RemoveDominated(int var);

  bool Dominates(int var, int j, int i) const;
  void RemoveOption(int var, int position);

  std::vector<std::vector<int>> options_;
  std::vector<std::vector<double>> unary_;
  std::vector<Edge> edges_;
  std::vector<std::vector<int>> edges_of_;  // indices into edges_
};

// In which order the dynamic program eliminates variables: the size of its tables depends on nothing else.

struct EliminationOrder {
  std::vector<int> order;    // every variable once
  int width = 0;             // most neighbours a variable has when it is eliminated
  double largest_table = 0;  // product of its neighbours' option counts; the entries the table would have
  double total_entries = 0;  // of all tables
};

// Two classic greedy orders are simulated, and the one with the fewer table entries is taken: min-fill (the
// variable whose elimination connects the fewest pairs of neighbours) and min-table (the variable whose table
// is smallest). Ties go to the smaller degree, then to the smaller index. `neighbours` is symmetric and free
// of self-loops.
EliminationOrder ChooseEliminationOrder(const std::vector<std::vector<int>>& neighbours,
                                        const std::vector<int>& option_counts);

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
