// The fastest plan whose packed weights fit into a given amount of memory.
#pragma once

#include "graph_tuner/problem/prepared_problem.h"

namespace tilesmith {

// Solves `prepared` with the lowest price on weights (weight_price.h), up to a hundredth, at which the
// solution fits options.max_weight_bytes; `prepared` carries that price afterwards. A plan between this one
// and the next larger may be missed. Preconditions: a limit, and no price yet. Throws Error(kNoCandidate)
// when even the smallest weights that the log has schedules for are larger, and as SolveProblem does.
Solution SolveWithinWeights(const Graph& graph, PreparedProblem& prepared, CostSource& costs,
                            const GraphTuneOptions& options);

}  // namespace tilesmith
