// Exact dynamic programming over the whole graph: variable elimination (bucket_elimination.h) of what the
// reductions of solve_reduce.h leave, in a good order (solve_order.h).
//
// The price is the largest table, exponential in the treewidth of the graph, which is small for CNNs.
// Source: U. Bertele and F. Brioschi, Nonserial Dynamic Programming, 1972.
#pragma once

#include "graph_tuner/solver.h"

namespace tilesmith {

// Refuses, naming width and table size and the solvers to try instead, when a table would exceed
// limits.table_entries or all of them together eight times that. Time and memory are proportional to
// stats.total_entries.
Solution SolveDp(const LayoutProblem& problem, const SolveLimits& limits);

}  // namespace tilesmith
