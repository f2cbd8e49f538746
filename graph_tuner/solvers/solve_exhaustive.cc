#include <algorithm>
#include <utility>

#include "graph_tuner/solvers/solver.h"
#include "layouts/base/check.h"

namespace tilesmith {
namespace {

using VarId = LayoutProblem::VarId;

class Search {
 public:
  Search(const LayoutProblem& problem, const SolveLimits& limits)
      : problem_(problem),
        limit_(limits.partial_assignments),
        earlier_(problem.size()),
        least_after_(problem.size() + 1),
        current_(problem.size()) {
    const auto& graph = problem.boost();
    for (VarId var = 0; var < problem.size(); ++var) {
      const auto& costs = problem.variable(var).costs;
      least_after_[var] = *std::min_element(costs.begin(), costs.end());
    }
    for (auto [it, end] = boost::edges(graph); it != end; ++it) {
      const auto [low, high] = Endpoints(graph, *it);
      earlier_[high].emplace_back(low, &graph[*it]);
      least_after_[high] += *std::min_element(graph[*it].values.begin(), graph[*it].values.end());
    }
    for (size_t var = problem.size(); var-- > 0;) least_after_[var] += least_after_[var + 1];
  }

  void Run() { Descend(0, 0); }

  Assignment best_assignment;
  double best = kForbidden;
  uint64_t visited = 0;
  bool exceeded = false;

 private:
  void Descend(VarId var, double cost) {
    if (var == problem_.size()) {
      best = cost;
      best_assignment = current_;
      return;
    }
    for (int option = 0; option < problem_.Options(var) && !exceeded; ++option) {
      if (++visited > limit_) {
        exceeded = true;
        return;
      }
      double next = cost + problem_.variable(var).costs[static_cast<size_t>(option)];
      for (const auto& [other, costs] : earlier_[var]) next += costs->at(current_[other], option);
      if (!(next + least_after_[var + 1] < best)) continue;
      current_[var] = option;
      Descend(var + 1, next);
    }
  }

  const LayoutProblem& problem_;
  const uint64_t limit_;
  std::vector<std::vector<std::pair<VarId, const CostMatrix*>>> earlier_;
  std::vector<double> least_after_;  // lower bound of all terms that end at this variable or a later one
  Assignment current_;
};

}  // namespace

Solution SolveExhaustive(const LayoutProblem& problem, const SolveLimits& limits) {
  Search search(problem, limits);
  search.Run();
  SolveStats stats;
  stats.total_entries = search.visited;
  if (search.exceeded) {
    Solution solution;
    solution.stats = stats;
    solution.refusal =
        fmt::format("too large for exhaustive search: more than {} partial assignments of {} variables",
                    limits.partial_assignments, problem.size());
    return solution;
  }
  if (search.best_assignment.size() != problem.size()) return InfeasibleSolution(stats);
  return OptimalSolution(problem, std::move(search.best_assignment), stats);
}

}  // namespace tilesmith
