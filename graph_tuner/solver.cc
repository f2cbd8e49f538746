#include "graph_tuner/solver.h"

#include <array>

#include "graph_tuner/solve_dp.h"
#include "graph_tuner/solve_exhaustive.h"
#include "layouts/base/check.h"

namespace tilesmith {

std::span<const Solver> Solvers() {
  static constexpr std::array<Solver, 2> solvers{{
      {"dp", "exact dynamic programming by variable elimination; refuses graphs that are too wide", &SolveDp},
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

}  // namespace tilesmith
