// Lower bounds: what no assignment can cost less than, for problems too wide to be solved exactly.
//
// Three facts make them bounds. (1) The sum of the least entry of every unary table and every edge bounds the
// cost of any assignment, term by term. (2) Taking an amount off all entries of an edge that belong to one
// option of one of its ends, and adding it to that option's unary cost, changes no assignment's cost; so the
// first sum, after any number of such moves, is still a bound. (3) Mini-buckets (bucket_elimination.h) bound
// the same cost from below, and never give less than the sum of (1).
// Hence: move costs so that the sum of (1) grows, then let mini-buckets tighten it further.
//
// All hold up to rounding, some 1e-12 of the costs involved.
#pragma once

#include <cstdint>
#include <vector>

#include "graph_tuner/pairwise_costs.h"

namespace tilesmith {

// The sum of (1); infinite when some variable has no option left, so that nothing is feasible.
double SumOfLeast(const PairwiseCosts& costs);

// Moves costs as in (2); SumOfLeast never falls. Options found to be impossible become infinite.
// Sequential tree-reweighted message passing, written as moves instead of messages: in ascending and
// descending order, each variable collects all its edges can spare and hands it on, in equal parts, to the
// edges that lead ahead. Handing on loses nothing: each edge's least entry for each option is 0 then, so the
// edge's least becomes its part of the variable's.
// Source: V. Kolmogorov, Convergent tree-reweighted message passing for energy minimization, IEEE PAMI 28,
// 2006.
void Reparametrise(PairwiseCosts& costs);

// Mini-bucket bound with tables of at most that many entries; the exact minimum when they suffice. Best of
// reparametrised costs.
double LowerBound(const PairwiseCosts& costs, uint64_t table_entries);

// For each option of each variable, a bound for the assignments that choose it: the sum of (1) with this
// variable's least, and that of its edges, taken for this option alone. Precondition: SumOfLeast is finite.
std::vector<std::vector<double>> OptionBounds(const PairwiseCosts& costs);

}  // namespace tilesmith
