// The oracle: every assignment, depth first in variable order.
#pragma once

#include "graph_tuner/solvers/solver.h"

namespace tilesmith {

// Exact. A branch is left only when its cost so far plus the least that its open terms can add is no better
// than the best assignment known. Refuses once limits.partial_assignments branches have been visited.
Solution SolveExhaustive(const LayoutProblem& problem, const SolveLimits& limits);

}  // namespace tilesmith
