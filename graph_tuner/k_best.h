// Not only the best assignment but the k best: the plans that a plan is explained by.
//
// Assignments that differ in variables that do not matter (the helpers that AddConversions makes) are one and
// the same; of them the cheapest stands for all. Partitioning: the set of all assignments is split, after
// each one found, by an option of a variable that matters in which it differs from the best of its part, so
// that in each part the best is known and the second best is needed. The cheapest of the second bests is the
// next. The second best of a part is a layout problem too, and the dynamic program solves it. Let b be the
// best and v_1..v_m the variables that matter; variables t_1..t_m are added whose options say where an
// assignment first leaves b: "not up to here", "here", "before". Edges (v_i, t_i) and (t_i-1, t_i) forbid
// what is inconsistent and t_m may not be "not up to here".
//
// To keep that problem narrow, options are dropped first that no assignment among the k best uses: those
// whose lower bound (OptionBounds, lower_bound.h) exceeds the cost of k assignments already at hand, which
// are the best and its cheapest changes of one variable. Sources: E. Lawler, A procedure for computing the k
// best solutions to discrete optimization problems, Management Science 18, 1972; D. Nilsson, An efficient
// algorithm for finding the M most probable configurations, Statistics and Computing 8, 1998 (parts by best
// and second best). The variables t: original.
#pragma once

#include <functional>
#include <vector>

#include "graph_tuner/solver.h"

namespace tilesmith {

// The k cheapest assignments, cheapest first, no two of them the same in all variables that `matters`; exact,
// up to rounding among equal costs. The first is what SolveDp gives. Fewer when there are no more, or when
// the dynamic program refuses: then the last element is its refusal. lower_bound is the first one's cost for
// all. Deterministic. Precondition: k >= 1.
std::vector<Solution> SolveKBest(const LayoutProblem& problem, int k, const SolveLimits& limits,
                                 const std::function<bool(LayoutProblem::VarId)>& matters);

}  // namespace tilesmith
