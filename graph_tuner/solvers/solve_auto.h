// Exactly where that is possible, else by the better of the solvers that state how far from optimal they are.
#pragma once

#include "graph_tuner/solvers/solver.h"

namespace tilesmith {

// Solution::solver says which one found it.
Solution SolveAuto(const LayoutProblem& problem, const SolveLimits& limits);

}  // namespace tilesmith
