// Solvers of the layout problem, by name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "graph_tuner/layout_problem.h"

namespace tilesmith {

struct SolveLimits {
  uint64_t table_entries = uint64_t{1} << 24;        // of one table, 8 bytes each ("dp")
  uint64_t partial_assignments = uint64_t{1} << 28;  // visited ("exhaustive")
};

struct SolveStats {
  int induced_width = 0;         // most variables a table spans
  uint64_t largest_table = 0;    // entries
  uint64_t total_entries = 0;    // of all tables, or partial assignments visited
  int variables_eliminated = 0;  // of those that reductions left
};

// Either an assignment, or a refusal in words: too large for the limits, or nothing feasible. Never a guess.
struct Solution {
  Assignment assignment;
  double cost = 0;
  std::string certificate;  // "optimal"
  std::string refusal;      // empty when solved
  SolveStats stats;         // also of a refusal
  bool solved() const { return refusal.empty(); }
};

using SolveFunction = Solution (*)(const LayoutProblem&, const SolveLimits&);

struct Solver {
  std::string_view name;
  std::string_view summary;  // one line for --list and help texts
  SolveFunction solve;       // pure and deterministic: equal problems give equal assignments
};

// All solvers, the default first.
std::span<const Solver> Solvers();
// Throws Error(kUsage) naming the known solvers.
const Solver& FindSolver(std::string_view name);

}  // namespace tilesmith
