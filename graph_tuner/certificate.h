// The three ways in which a solver answers, and the words for what is proved.
#pragma once

#include <string>

#include "graph_tuner/solver.h"

namespace tilesmith {

// An assignment that nothing is cheaper than.
Solution OptimalSolution(const LayoutProblem& problem, Assignment assignment, const SolveStats& stats);

// An assignment, and a bound that nothing is cheaper than. A gap that rounding alone explains is none: then
// the solution is optimal. Otherwise the certificate is as of GapText.
Solution BoundedSolution(const LayoutProblem& problem, Assignment assignment, double lower_bound,
                         const SolveStats& stats);

// A refusal: proved that every assignment has an infinite cost.
Solution InfeasibleSolution(const SolveStats& stats);

// "within 1.30% of optimal (bound 12.34 ms)", costs being seconds: by how much the cost exceeds the bound, so
// by how much it can exceed the optimum. Where the bound is not positive there is no such ratio: "at most
// 0.12 ms above optimal". Rounded to the safe side. Precondition: cost > lower_bound.
std::string GapText(double cost, double lower_bound);

}  // namespace tilesmith
