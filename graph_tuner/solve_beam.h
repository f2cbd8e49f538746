// Beam search: one variable after the other, keeping the most promising partial assignments.
//
// What a partial assignment has to do with the rest of the problem is the options of its frontier, the
// variables that still have a neighbour without an option. So of those that agree on the frontier only the
// cheapest is kept (this alone is dynamic programming, and exact); and of what remains, the `beam_width` best
// by cost so far plus the least each edge from the frontier onwards must add. Costs are moved beforehand
// (lower_bound.h), which makes that sum a good estimate, and it never exceeds the true cost.
// Hence the second lower bound: an assignment that was dropped on the way costs at least the least estimate
// of all that were dropped, plus what the variables after it cost at least; any other is no better than the
// one found. Source: B. Lowerre, The Harpy speech recognition system, 1976, for the beam; the rest is
// standard.
#pragma once

#include "graph_tuner/solver.h"

namespace tilesmith {

// Runs after the reductions of solve_reduce.h. Optimal when nothing was dropped, or nothing that could have
// been cheaper; the bound is the better of the two. Refuses when the beam lost every assignment with a finite
// cost and it is not proved that there is none. Ties go to the lower option of the variable chosen first.
// Time is linear in variables times width times options.
Solution SolveBeam(const LayoutProblem& problem, const SolveLimits& limits);

}  // namespace tilesmith
