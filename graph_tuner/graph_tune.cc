#include "graph_tuner/graph_tune.h"

#include "graph_tuner/problem/prepared_problem.h"
#include "graph_tuner/problem/weight_limit.h"
#include "layouts/base/error.h"

namespace tilesmith {

GraphTuneResult GraphTune(const Graph& graph, const std::vector<Record>& records, CostSource& costs,
                          const GraphTuneOptions& options) {
  PreparedProblem prepared = PrepareProblem(graph, records, costs, options);
  const Solution solution = options.max_weight_bytes ? SolveWithinWeights(graph, prepared, costs, options)
                                                     : SolveProblem(graph, prepared.built.problem, options);
  const LayoutProblem& problem = prepared.built.problem;
  return {PlanOf(graph, prepared, solution, costs, options), solution.stats, problem.size(),
          boost::num_edges(problem.boost())};
}

std::optional<Plan> PlanIfWeightsFit(const Graph& graph, const std::vector<Record>& records,
                                     CostSource& costs, const GraphTuneOptions& options) {
  try {
    return GraphTune(graph, records, costs, options).plan;
  } catch (const Error& error) {
    if (!options.max_weight_bytes || error.code() != ErrorCode::kNoCandidate) throw;
    return std::nullopt;
  }
}

}  // namespace tilesmith
