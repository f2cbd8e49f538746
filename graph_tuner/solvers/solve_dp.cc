#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "graph_tuner/solvers/bucket_elimination.h"
#include "graph_tuner/solvers/solver.h"
#include "layouts/base/settings.h"

namespace tilesmith {

Solution SolveDp(const LayoutProblem& problem, const SolveLimits& limits) {
  ReducedProblem reduced(problem);
  reduced.Reduce();
  const PairwiseCosts costs = CostsOf(reduced);
  const EliminationOrder order = ChooseEliminationOrder(costs);

  SolveStats stats;
  stats.induced_width = order.width;
  stats.largest_table = static_cast<uint64_t>(std::min(order.largest_table, 1e18));
  stats.total_entries = static_cast<uint64_t>(std::min(order.total_entries, 1e18));
  const double limit = static_cast<double>(limits.table_entries);
  if (order.largest_table > limit || order.total_entries > 8 * limit) {
    Solution refused;
    refused.stats = stats;
    refused.refusal = fmt::format(
        "too wide for exact dynamic programming: induced width {}, largest table {:.3g} entries, all tables "
        "{:.3g} (limits: {} and {}); {} pbqp and {} beam solve it and state how far from optimal "
        "they can be",
        order.width, order.largest_table, order.total_entries, limits.table_entries, 8 * limits.table_entries,
        settings::kSolver, settings::kSolver);
    return refused;
  }
  for (int var = 0; var < costs.size(); ++var) stats.variables_eliminated += costs.Options(var) > 1;
  const Elimination elimination = Eliminate(costs, order.order);
  if (std::isinf(elimination.least)) return InfeasibleSolution(stats);
  return OptimalSolution(problem, reduced.Original(elimination.options), stats);
}

}  // namespace tilesmith
