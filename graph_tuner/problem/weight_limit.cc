#include "graph_tuner/problem/weight_limit.h"

#include <fmt/format.h>

#include <cmath>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

constexpr double kLowestPrice = 1e-15, kHighestPrice = 1;  // seconds per byte
constexpr double kStep = 8, kPrecision = 1.01;
constexpr double kMiB = 1 << 20;

class PricedProblem {
 public:
  PricedProblem(const Graph& graph, PreparedProblem& prepared, CostSource& costs,
                const GraphTuneOptions& options)
      : graph_(graph), prepared_(prepared), costs_(costs), options_(options) {}

  Solution SolveAt(double price) {
    SetWeightPrice(graph_, prepared_, costs_, options_, price);
    return SolveProblem(graph_, prepared_.built.problem, options_);
  }

  double WeightBytes(const Solution& solution) const {
    Plan plan;
    plan.nodes = ChosenNodes(graph_, prepared_.built, solution.assignment);
    return PackedWeightBytes(plan, options_.cpu);
  }

  bool Fits(const Solution& solution) const {
    return WeightBytes(solution) <= double(options_.max_weight_bytes.value());
  }

 private:
  const Graph& graph_;
  PreparedProblem& prepared_;
  CostSource& costs_;
  const GraphTuneOptions& options_;
};

}  // namespace

Solution SolveWithinWeights(const Graph& graph, PreparedProblem& prepared, CostSource& costs,
                            const GraphTuneOptions& options) {
  PricedProblem problem(graph, prepared, costs, options);
  Solution solution = SolveProblem(graph, prepared.built.problem, options);
  if (problem.Fits(solution)) return solution;
  double too_low = kLowestPrice, enough = kLowestPrice;
  while (!problem.Fits(solution = problem.SolveAt(enough))) {
    too_low = enough;
    enough *= kStep;
    if (enough <= kHighestPrice) continue;
    throw Error(ErrorCode::kNoCandidate,
                fmt::format("{}: the smallest packed weights that the log has schedules for take {:.1f} MiB, "
                            "allowed are {:.1f}",
                            graph.name(), problem.WeightBytes(solution) / kMiB,
                            double(*options.max_weight_bytes) / kMiB));
  }
  while (enough > too_low * kPrecision) {
    const double middle = std::sqrt(too_low * enough);
    (problem.Fits(problem.SolveAt(middle)) ? enough : too_low) = middle;
  }
  return problem.SolveAt(enough);
}

}  // namespace tilesmith
