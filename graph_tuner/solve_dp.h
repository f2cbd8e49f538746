// Exact dynamic programming over the whole graph: variable (bucket) elimination.
//
// Eliminating a variable replaces every cost that mentions it by one table over its neighbours, which holds
// the least cost for each of their combinations; going back through the tables gives the assignment. The
// price is the largest table, exponential in the treewidth of the graph, which is small for CNNs.
// Source: U. Bertele and F. Brioschi, Nonserial Dynamic Programming, 1972; R. Dechter, Bucket elimination,
// Artificial Intelligence 113, 1999.
#pragma once

#include "graph_tuner/solver.h"

namespace tilesmith {

// Refuses, naming width and table size, when a table would exceed limits.table_entries or all of them
// together eight times that. Time and memory are proportional to stats.total_entries.
Solution SolveDp(const LayoutProblem& problem, const SolveLimits& limits);

}  // namespace tilesmith
