// Reductions that keep at least one optimal assignment: what the dynamic program need not look at.
#pragma once

#include <vector>

#include "graph_tuner/solvers/layout_problem.h"

namespace tilesmith {

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

}  // namespace tilesmith
