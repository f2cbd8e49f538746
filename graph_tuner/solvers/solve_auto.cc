#include "graph_tuner/solvers/solve_auto.h"

#include "graph_tuner/solvers/solve_beam.h"
#include "graph_tuner/solvers/solve_dp.h"
#include "graph_tuner/solvers/solve_pbqp.h"

namespace tilesmith {

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
