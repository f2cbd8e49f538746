// The steps of graph tuning one by one: the problem that is solved, and the plan that a solution stands for.
// GraphTune is the one, a solver, and the other; explanations (explain.h) solve the same problem again and
// again with options taken away.
#pragma once

#include <string>
#include <vector>

#include "graph_tuner/graph_tune.h"
#include "graph_tuner/problem/build_problem.h"
#include "graph_tuner/problem/candidates.h"

namespace tilesmith {

// Moved, never copied: `built` points to records of `candidates`, which moving leaves where they are.
struct PreparedProblem {
  PreparedProblem() = default;
  PreparedProblem(PreparedProblem&&) = default;
  PreparedProblem& operator=(PreparedProblem&&) = default;

  Candidates candidates;
  std::vector<std::string> defaults;  // workloads without a record, which have their default schedule
  TolerantLayouts layouts;
  BuiltProblem built;
  WeightPrice weight_price;  // what `built` charges for weights
};

// All that comes before solving. `costs` is asked everything it will ever be asked for this problem. Throws
// Error(kNoCandidate) and Error(kUsage) as GraphTune does.
PreparedProblem PrepareProblem(const Graph& graph, const std::vector<Record>& records, CostSource& costs,
                               const GraphTuneOptions& options);

// Builds the problem anew with a price on weights, in seconds per byte. The other arguments are those of
// PrepareProblem.
void SetWeightPrice(const Graph& graph, PreparedProblem& prepared, CostSource& costs,
                    const GraphTuneOptions& options, double price);

// Runs options.solver. Throws Error(kNoCandidate) with its reason when it refuses.
Solution SolveProblem(const Graph& graph, const LayoutProblem& problem, const GraphTuneOptions& options);

// The plan of an assignment to the variables of `prepared`, priced. Its cost is computed from the plan alone
// (price_plan.h) and must agree with the solution's, the price of weights aside. The other arguments are
// those of PrepareProblem.
Plan PlanOf(const Graph& graph, const PreparedProblem& prepared, const Solution& solution, CostSource& costs,
            const GraphTuneOptions& options);

}  // namespace tilesmith
