#include "graph_tuner/problem/graph_tune.h"

#include <fmt/format.h>

#include <cmath>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

constexpr double kLowestPrice = 1e-15, kHighestPrice = 1;  // seconds per byte
constexpr double kStep = 8, kPrecision = 1.01;
constexpr double kMiB = 1 << 20;

SolvedProblem SolveWithinWeights(const NetworkProblem& problem, const Corrections& corrections,
                                 int64_t max_bytes) {
  const auto solve = [&](double price) {
    return problem.Solve(corrections, {.seconds_per_weight_byte = price});
  };
  const auto weight_bytes = [&](const SolvedProblem& solved) {
    Plan plan;
    plan.nodes = ChosenNodes(problem.graph(), solved.priced.built, solved.solution.assignment);
    return PackedWeightBytes(plan, problem.options().cpu);
  };
  const auto fits = [&](const SolvedProblem& solved) { return weight_bytes(solved) <= double(max_bytes); };

  SolvedProblem solved = solve(0);
  if (fits(solved)) return solved;
  double too_low = kLowestPrice, enough = kLowestPrice;
  while (!fits(solved = solve(enough))) {
    too_low = enough;
    enough *= kStep;
    if (enough <= kHighestPrice) continue;
    throw Error(ErrorCode::kNoCandidate,
                fmt::format("{}: the smallest packed weights that the log has schedules for take {:.1f} MiB, "
                            "allowed are {:.1f}",
                            problem.graph().name(), weight_bytes(solved) / kMiB, double(max_bytes) / kMiB));
  }
  while (enough > too_low * kPrecision) {
    const double middle = std::sqrt(too_low * enough);
    (fits(solve(middle)) ? enough : too_low) = middle;
  }
  return solve(enough);
}

}  // namespace

GraphTuneResult GraphTune(const NetworkProblem& problem, const Corrections& corrections,
                          std::optional<int64_t> max_weight_bytes) {
  const SolvedProblem solved = max_weight_bytes ? SolveWithinWeights(problem, corrections, *max_weight_bytes)
                                                : problem.Solve(corrections);
  const LayoutProblem& layouts = solved.priced.built.problem;
  return {problem.PlanOf(solved.priced, solved.solution), solved.solution.stats, layouts.size(),
          boost::num_edges(layouts.boost())};
}

std::optional<Plan> PlanIfWeightsFit(const NetworkProblem& problem, std::optional<int64_t> max_weight_bytes) {
  try {
    return GraphTune(problem, {}, max_weight_bytes).plan;
  } catch (const Error& error) {
    if (!max_weight_bytes || error.code() != ErrorCode::kNoCandidate) throw;
    return std::nullopt;
  }
}

}  // namespace tilesmith
