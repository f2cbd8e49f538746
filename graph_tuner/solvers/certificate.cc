#include "graph_tuner/solvers/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tilesmith {
namespace {

// To four digits, downwards or upwards.
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

}  // namespace tilesmith
