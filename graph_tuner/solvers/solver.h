// Solvers of the layout problem, by name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "graph_tuner/solvers/layout_problem.h"

namespace tilesmith {

// Costs that differ by no more than this share of them differ by rounding alone.
constexpr double kCostRounding = 1e-9;

struct SolveLimits {
  uint64_t table_entries = uint64_t{1} << 24;        // of one table, 8 bytes each ("dp")
  uint64_t partial_assignments = uint64_t{1} << 28;  // visited ("exhaustive")
  uint64_t beam_width = 1024;                        // states kept ("beam"); at least 1
  uint64_t bound_table_entries = uint64_t{1} << 14;  // of one table of the lower bound ("pbqp", "beam")
};

struct SolveStats {
  int induced_width = 0;         // most variables a table or a state of the beam spans
  uint64_t largest_table = 0;    // entries; for "beam" states, before some are dropped
  uint64_t total_entries = 0;    // of all tables, or partial assignments visited
  int variables_eliminated = 0;  // of those that reductions left
  int heuristic_choices = 0;     // "pbqp": reductions that may miss the optimum; "beam": cuts to its width
};

// Either an assignment with what is proved about it, or a refusal in words: too large for the limits, or
// nothing feasible. Never a guess.
struct Solution {
  Assignment assignment;
  double cost = 0;
  double lower_bound = 0;   // no assignment costs less, up to rounding; the cost itself when optimal
  std::string certificate;  // "optimal", or the gap to lower_bound (GapText)
  std::string refusal;      // empty when solved
  bool infeasible = false;  // refused, it being proved that every assignment has an infinite cost
  SolveStats stats;         // also of a refusal
  std::string_view solver;  // of "auto": the one that it took
  bool solved() const { return refusal.empty(); }
};

using SolveFunction = Solution (*)(const LayoutProblem&, const SolveLimits&);

struct Solver {
  std::string_view name;
  std::string_view summary;  // one line for --list and help texts
  // Pure and deterministic: equal problems give equal assignments. Among options that look the same to a
  // solver it takes the one with the lowest index.
  SolveFunction solve;
};

// All solvers, the default first.
std::span<const Solver> Solvers();
// Throws Error(kUsage) naming the known solvers.
const Solver& FindSolver(std::string_view name);

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

// Exactly where that is possible, else by the better of the solvers that state how far from optimal they are.

// Solution::solver says which one found it.
Solution SolveAuto(const LayoutProblem& problem, const SolveLimits& limits);

// Exact dynamic programming over the whole graph: variable elimination (bucket_elimination.h) of what the
// reductions of pairwise_costs.h leave, in a good order.
//
// The price is the largest table, exponential in the treewidth of the graph, which is small for CNNs.
// Source: U. Bertele and F. Brioschi, Nonserial Dynamic Programming, 1972.

// Refuses, naming width and table size and the solvers to try instead, when a table would exceed
// limits.table_entries or all of them together eight times that. Time and memory are proportional to
// stats.total_entries.
Solution SolveDp(const LayoutProblem& problem, const SolveLimits& limits);

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

// Runs after the reductions of pairwise_costs.h. Where RN was needed, the bound is that of what was left
// before the first RN. Refuses when every choice of RN's led to infinite costs and it is not proved that all
// do. Ties go to the lowest variable and option. Time is linear in the variables but for the bound.
Solution SolvePbqp(const LayoutProblem& problem, const SolveLimits& limits);

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

// Runs after the reductions of pairwise_costs.h. Optimal when nothing was dropped, or nothing that could have
// been cheaper; the bound is the better of the two. Refuses when the beam lost every assignment with a finite
// cost and it is not proved that there is none. Ties go to the lower option of the variable chosen first.
// Time is linear in variables times width times options.
Solution SolveBeam(const LayoutProblem& problem, const SolveLimits& limits);

// The oracle: every assignment, depth first in variable order.

// Exact. A branch is left only when its cost so far plus the least that its open terms can add is no better
// than the best assignment known. Refuses once limits.partial_assignments branches have been visited.
Solution SolveExhaustive(const LayoutProblem& problem, const SolveLimits& limits);

}  // namespace tilesmith
