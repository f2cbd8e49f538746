#include "graph_tuner/problem/graph_tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "graph_tuner/problem/within_limits.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"

namespace tilesmith {
namespace {

constexpr PriceRange kWeightPrices = {1e-15, 1};  // seconds per byte
constexpr double kMiB = 1 << 20;

Plan ChosenPlan(const NetworkProblem& problem, const SolvedProblem& solved) {
  Plan plan;
  plan.nodes = ChosenNodes(problem.graph(), solved.priced.built, solved.solution.assignment);
  return plan;
}

// At a price on weights, the fastest of the plans within the budget of errors that a price on those finds.
// Whatever the price, the solution's cost less the budget's share is at most what any plan in the budget
// costs: the largest such bound says how far from the fastest this one can be.
SolvedProblem SolveWithinError(const NetworkProblem& problem, const Corrections& corrections,
                               double weight_price) {
  const ErrorBudget& errors = problem.options().errors;
  double bound = -std::numeric_limits<double>::infinity();
  const auto solve = [&](double price) {
    SolvedProblem solved = problem.Solve(
        corrections, {.seconds_per_weight_byte = weight_price, .seconds_per_error_square = price});
    if (errors.any()) bound = std::max(bound, solved.solution.cost - price * errors.most);
    return solved;
  };
  if (!errors.any()) return solve(0);
  const auto error_of = [&](const SolvedProblem& solved) { return errors.Of(ChosenPlan(problem, solved)); };
  auto [solved, price, fits] = AtLowestPrice(
      kErrorPrices, solve, [&](const SolvedProblem& one) { return error_of(one) <= errors.most; });
  if (!fits) {
    throw Error(ErrorCode::kNoCandidate,
                fmt::format("{}: the smallest output error that the log has schedules for is predicted to "
                            "be {:.2g}, allowed is {:.2g} ({})",
                            problem.graph().name(), std::sqrt(error_of(solved)), std::sqrt(errors.most),
                            settings::kMaxOutputError));
  }
  const double cost = solved.solution.cost - price * error_of(solved);
  if (price > 0 && bound > 0) {
    solved.solution.certificate +=
        fmt::format(" at its price, and at most {:.1f}% slower than any plan within {:.2g}",
                    (cost / bound - 1) * 100, std::sqrt(errors.most));
  }
  return solved;
}

SolvedProblem SolveWithinWeights(const NetworkProblem& problem, const Corrections& corrections,
                                 int64_t max_bytes) {
  const auto weight_bytes = [&](const SolvedProblem& solved) {
    return PackedWeightBytes(ChosenPlan(problem, solved), problem.options().cpu);
  };
  auto [solved, price, fits] = AtLowestPrice(
      kWeightPrices, [&](double price) { return SolveWithinError(problem, corrections, price); },
      [&](const SolvedProblem& one) { return weight_bytes(one) <= static_cast<double>(max_bytes); });
  if (!fits) {
    throw Error(ErrorCode::kNoCandidate,
                fmt::format("{}: the smallest packed weights that the log has schedules for take {:.1f} MiB, "
                            "allowed are {:.1f} ({})",
                            problem.graph().name(), weight_bytes(solved) / kMiB,
                            static_cast<double>(max_bytes) / kMiB, settings::kMaxWeights));
  }
  return std::move(solved);
}

}  // namespace

GraphTuneResult GraphTune(const NetworkProblem& problem, const Corrections& corrections,
                          std::optional<int64_t> max_weight_bytes) {
  const SolvedProblem solved = max_weight_bytes ? SolveWithinWeights(problem, corrections, *max_weight_bytes)
                                                : SolveWithinError(problem, corrections, 0);
  const LayoutProblem& layouts = solved.priced.built.problem;
  return {problem.PlanOf(solved.priced, solved.solution), solved.solution.stats, layouts.size(),
          boost::num_edges(layouts.boost())};
}

std::optional<Plan> PlanIfWeightsFit(const NetworkProblem& problem, std::optional<int64_t> max_weight_bytes) {
  try {
    return GraphTune(problem, {}, max_weight_bytes).plan;
  } catch (const Error& error) {
    const bool limited = max_weight_bytes || problem.options().errors.any();
    if (!limited || error.code() != ErrorCode::kNoCandidate) throw;
    return std::nullopt;
  }
}

}  // namespace tilesmith
