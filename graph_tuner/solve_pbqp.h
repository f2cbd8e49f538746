// Reductions of the partitioned boolean quadratic problem (PBQP), which is what a layout problem is.
//
//   R0   a variable without neighbours takes its least cost.
//   RI   one with a single neighbour u: u's cost of option j grows by min_i (c_i + m_ij).
//   RII  one with two neighbours u, w: the edge (u, w) grows by min_i (c_i + m_ij + n_ik).
//   RN   one with more: it takes the option that is least together with the best reply of each neighbour,
//        who are then charged for it.
// Variables choose in reverse order, each the option that is least given what its neighbours, as they were
// when it went, have chosen; so those that RN took choose once more, which can only be cheaper.
//
// R0, RI and RII keep the optimum: without RN the answer is optimal. RN may miss it. It therefore waits until
// nothing else applies, and the costs of what is left are moved first (lower_bound.h), so that what looks
// cheap to a variable and its neighbours is so for the rest too.
// Sources: B. Scholz and E. Eckstein, Register allocation for irregular architectures, LCTES 2002 (R0, RI,
// RII, RN on the variable with the most neighbours); L. Hames and B. Scholz, Nearly optimal register
// allocation with PBQP, JMLC 2006 (RN in the presence of infinite costs). Moving costs first and choosing
// again are original.
#pragma once

#include "graph_tuner/solver.h"

namespace tilesmith {

// Runs after the reductions of solve_reduce.h. Where RN was needed, the bound is that of what was left before
// the first RN. Refuses when every choice of RN's led to infinite costs and it is not proved that all do.
// Ties go to the lowest variable and option. Time is linear in the variables but for the bound.
Solution SolvePbqp(const LayoutProblem& problem, const SolveLimits& limits);

}  // namespace tilesmith
