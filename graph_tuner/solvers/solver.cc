#include "graph_tuner/solvers/solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "layouts/base/check.h"

namespace tilesmith {

std::span<const Solver> Solvers() {
  static constexpr std::array<Solver, 5> solvers{{
      {"auto", "dp; where that refuses, the better of beam and pbqp", &SolveAuto},
      {"dp", "exact dynamic programming by variable elimination; refuses graphs that are too wide", &SolveDp},
      {"pbqp", "PBQP reductions; states how far from optimal it can be where they do not suffice",
       &SolvePbqp},
      {"beam", "beam search; states how far from optimal it can be where its width does not suffice",
       &SolveBeam},
      {"exhaustive", "tries every assignment, cutting hopeless branches; for small graphs", &SolveExhaustive},
  }};
  return solvers;
}

const Solver& FindSolver(std::string_view name) {
  std::string known;
  for (const Solver& solver : Solvers()) {
    if (solver.name == name) return solver;
    known += (known.empty() ? "" : ", ") + std::string(solver.name);
  }
  throw Error(ErrorCode::kUsage, fmt::format("unknown solver \"{}\" (known: {})", name, known));
}

namespace {

// Rounds to four digits, downwards or upwards.
double RoundDown(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
  return std::floor(value / unit) * unit;
}
double RoundUp(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
  return std::ceil(value / unit) * unit;
}

}  // namespace

Solution OptimalSolution(const LayoutProblem& problem, Assignment assignment, const SolveStats& stats) {
  Solution solution;
  solution.assignment = std::move(assignment);
  solution.cost = solution.lower_bound = Evaluate(problem, solution.assignment);
  solution.certificate = "optimal";
  solution.stats = stats;
  return solution;
}

Solution BoundedSolution(const LayoutProblem& problem, Assignment assignment, double lower_bound,
                         const SolveStats& stats) {
  Solution solution = OptimalSolution(problem, std::move(assignment), stats);
  if (solution.cost - lower_bound <= kCostRounding * std::abs(solution.cost)) return solution;
  solution.lower_bound = lower_bound;
  solution.certificate = GapText(solution.cost, lower_bound);
  return solution;
}

Solution InfeasibleSolution(const SolveStats& stats) {
  Solution solution;
  solution.stats = stats;
  solution.infeasible = true;
  solution.refusal = "no assignment has a finite cost";
  return solution;
}

std::string GapText(double cost, double lower_bound) {
  if (lower_bound <= 0)
    return fmt::format("at most {:.4g} ms above optimal", RoundUp((cost - lower_bound) * 1e3));
  const double percent = std::ceil((cost / lower_bound - 1) * 1e4) / 1e2;
  return fmt::format("within {:.2f}% of optimal (bound {:.4g} ms)", percent, RoundDown(lower_bound * 1e3));
}

Solution SolveAuto(const LayoutProblem& problem, const SolveLimits& limits) {
  Solution best = SolveDp(problem, limits);
  best.solver = "dp";
  if (best.solved() || best.infeasible) return best;
  const std::string too_wide = best.refusal;
  const auto try_solver = [&](std::string_view name, SolveFunction solve) {
    Solution found = solve(problem, limits);
    found.solver = name;
    if (found.solved() && (!best.solved() || found.cost < best.cost)) best = std::move(found);
  };
  try_solver("beam", &SolveBeam);
  try_solver("pbqp", &SolvePbqp);
  if (!best.solved()) best.refusal = too_wide;
  return best;
}

}  // namespace tilesmith
