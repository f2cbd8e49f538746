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
  std::string certificate;  // "optimal", or the gap to lower_bound (GapText, certificate.h)
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

}  // namespace tilesmith
