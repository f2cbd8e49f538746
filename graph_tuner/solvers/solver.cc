#include "graph_tuner/solvers/solver.h"

#include <array>

#include "graph_tuner/solvers/solve_auto.h"
#include "graph_tuner/solvers/solve_beam.h"
#include "graph_tuner/solvers/solve_dp.h"
#include "graph_tuner/solvers/solve_exhaustive.h"
#include "graph_tuner/solvers/solve_pbqp.h"
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

}  // namespace tilesmith
