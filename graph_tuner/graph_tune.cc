#include "graph_tuner/graph_tune.h"

#include "graph_tuner/prepared_problem.h"

namespace tilesmith {

GraphTuneResult GraphTune(const Graph& graph, const std::vector<Record>& records, CostSource& costs,
                          const GraphTuneOptions& options) {
  const PreparedProblem prepared = PrepareProblem(graph, records, costs, options);
  const LayoutProblem& problem = prepared.built.problem;
  const Solution solution = SolveProblem(graph, problem, options);
  return {PlanOf(graph, prepared, solution, costs, options), solution.stats, problem.size(),
          boost::num_edges(problem.boost())};
}

}  // namespace tilesmith
