#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "graph_tuner/solvers/lower_bound.h"
#include "graph_tuner/solvers/solver.h"
#include "layouts/base/settings.h"

namespace tilesmith {
namespace {

// What is not reduced yet, and what is needed to go back.
class PbqpGraph {
 public:
  explicit PbqpGraph(PairwiseCosts costs) : alive_(costs.unary.size(), true) { Load(std::move(costs)); }

  // R0, RI and RII until none applies.
  void ReduceExactly() {
    while (!reducible_.empty()) {
      const int var = *reducible_.begin();
      if (Degree(var) > 2) {  // it has gained an edge since
        reducible_.erase(var);
        continue;
      }
      const Removed& removed = Remove(var);
      if (removed.edges.empty())
        least_ += *std::min_element(removed.unary.begin(), removed.unary.end());
      else if (removed.edges.size() == 1)
        ReduceOne(removed);
      else
        ReduceTwo(removed);
    }
  }

  // RN on the variable with the most neighbours. Precondition: some are left.
  void ReduceMany() {
    int most = -1;
    for (int var = 0; var < costs_.size(); ++var)
      if (alive_[static_cast<size_t>(var)] && (most < 0 || Degree(var) > Degree(most))) most = var;
    const Removed& removed = Remove(most);
    const int chosen = BestWithReplies(removed);
    for (const PairwiseEdge& edge : removed.edges) {
      const int other = edge.Other(removed.var);
      for (int j = 0; j < costs_.Options(other); ++j)
        costs_.unary[static_cast<size_t>(other)][static_cast<size_t>(j)] += edge.At(removed.var, chosen, j);
    }
  }

  bool AllReduced() const { return removed_.size() == alive_.size(); }
  double least() const { return least_; }  // of what has been reduced to nothing
  int most_neighbours() const { return most_neighbours_; }

  // The part not reduced yet, with the same numbers; reduced variables have one option of no cost.
  PairwiseCosts Rest() const {
    PairwiseCosts rest{std::vector<std::vector<double>>(alive_.size(), std::vector<double>{0.0}), {}};
    for (int var = 0; var < costs_.size(); ++var)
      if (alive_[static_cast<size_t>(var)])
        rest.unary[static_cast<size_t>(var)] = costs_.unary[static_cast<size_t>(var)];
    for (int var = 0; var < costs_.size(); ++var)
      for (const auto& [other, edge] : edge_to_[static_cast<size_t>(var)])
        if (other > var) rest.edges.push_back(costs_.edges[static_cast<size_t>(edge)]);
    return rest;
  }
  // The same part with its costs moved about.
  void ReplaceRest(PairwiseCosts rest) { Load(std::move(rest)); }

  // Precondition: AllReduced.
  std::vector<int> GoBack() const {
    std::vector<int> options(alive_.size(), 0);
    for (auto removed = removed_.rbegin(); removed != removed_.rend(); ++removed) {
      std::vector<double> costs = removed->unary;
      for (const PairwiseEdge& edge : removed->edges)
        for (size_t i = 0; i < costs.size(); ++i)
          costs[i] += edge.At(removed->var, static_cast<int>(i),
                              options[static_cast<size_t>(edge.Other(removed->var))]);
      options[static_cast<size_t>(removed->var)] =
          static_cast<int>(std::min_element(costs.begin(), costs.end()) - costs.begin());
    }
    return options;
  }

 private:
  struct Removed {
    int var = 0;
    std::vector<double> unary;
    std::vector<PairwiseEdge> edges;
  };

  int Degree(int var) const { return static_cast<int>(edge_to_[static_cast<size_t>(var)].size()); }

  void Load(PairwiseCosts costs) {
    costs_ = {std::move(costs.unary), {}};
    edge_to_.assign(costs_.unary.size(), {});
    for (PairwiseEdge& edge : costs.edges) AddEdge(std::move(edge));
    for (int var = 0; var < costs_.size(); ++var)
      if (alive_[static_cast<size_t>(var)]) Notice(var);
  }

  // It is called when a variable may have lost a neighbour.
  void Notice(int var) {
    if (Degree(var) <= 2) reducible_.insert(var);
  }

  const Removed& Remove(int var) {
    most_neighbours_ = std::max(most_neighbours_, Degree(var));
    Removed removed{var, std::move(costs_.unary[static_cast<size_t>(var)]), {}};
    for (const auto& [other, edge] : edge_to_[static_cast<size_t>(var)]) {
      removed.edges.push_back(std::move(costs_.edges[static_cast<size_t>(edge)]));
      edge_to_[static_cast<size_t>(other)].erase(var);
      Notice(other);
    }
    costs_.unary[static_cast<size_t>(var)] = {0.0};
    edge_to_[static_cast<size_t>(var)].clear();
    reducible_.erase(var);
    alive_[static_cast<size_t>(var)] = false;
    return removed_.emplace_back(std::move(removed));
  }

  void ReduceOne(const Removed& removed) {
    const PairwiseEdge& edge = removed.edges[0];
    auto& unary = costs_.unary[static_cast<size_t>(edge.Other(removed.var))];
    for (size_t j = 0; j < unary.size(); ++j) {
      double least = kForbidden;
      for (size_t i = 0; i < removed.unary.size(); ++i)
        least = std::min(least,
                         removed.unary[i] + edge.At(removed.var, static_cast<int>(i), static_cast<int>(j)));
      unary[j] += least;
    }
  }

  void ReduceTwo(const Removed& removed) {
    const PairwiseEdge &first = removed.edges[0], &second = removed.edges[1];
    const int u = first.Other(removed.var), w = second.Other(removed.var);
    PairwiseEdge edge{u, w, CostMatrix(costs_.Options(u), costs_.Options(w))};
    for (int j = 0; j < edge.costs.rows; ++j) {
      for (int k = 0; k < edge.costs.cols; ++k) {
        double least = kForbidden;
        for (int i = 0; i < static_cast<int>(removed.unary.size()); ++i)
          least = std::min(least, removed.unary[static_cast<size_t>(i)] + first.At(removed.var, i, j) +
                                      second.At(removed.var, i, k));
        edge.costs.at(j, k) = least;
      }
    }
    AddEdge(std::move(edge));
  }

  // What does not depend on both ends goes into their unary costs; when nothing is left there is no edge.
  void AddEdge(PairwiseEdge edge) {
    const auto known = edge_to_[static_cast<size_t>(edge.a)].find(edge.b);
    const bool exists = known != edge_to_[static_cast<size_t>(edge.a)].end();
    const int index = exists ? known->second : static_cast<int>(costs_.edges.size());
    if (exists) {
      PairwiseEdge& total = costs_.edges[static_cast<size_t>(index)];
      for (int j = 0; j < total.costs.rows; ++j)
        for (int k = 0; k < total.costs.cols; ++k) total.costs.at(j, k) += edge.At(total.a, j, k);
    } else {
      costs_.edges.push_back(std::move(edge));
    }
    PairwiseEdge& total = costs_.edges[static_cast<size_t>(index)];
    const int a = total.a, b = total.b;
    if (MoveIntoUnary(total.costs, costs_.unary[static_cast<size_t>(a)], costs_.unary[static_cast<size_t>(b)])
            .any_left) {
      edge_to_[static_cast<size_t>(a)][b] = index;
      edge_to_[static_cast<size_t>(b)][a] = index;
    } else {
      edge_to_[static_cast<size_t>(a)].erase(b);
      edge_to_[static_cast<size_t>(b)].erase(a);
      Notice(a);
      Notice(b);
    }
  }

  int BestWithReplies(const Removed& removed) const {
    std::vector<double> costs = removed.unary;
    for (const PairwiseEdge& edge : removed.edges) {
      const auto& replies = costs_.unary[static_cast<size_t>(edge.Other(removed.var))];
      for (size_t i = 0; i < costs.size(); ++i) {
        double least = kForbidden;
        for (size_t j = 0; j < replies.size(); ++j)
          least =
              std::min(least, edge.At(removed.var, static_cast<int>(i), static_cast<int>(j)) + replies[j]);
        costs[i] += least;
      }
    }
    return static_cast<int>(std::min_element(costs.begin(), costs.end()) - costs.begin());
  }

  PairwiseCosts costs_;
  std::vector<bool> alive_;
  std::vector<std::map<int, int>> edge_to_;  // of each variable: the edge to each neighbour
  std::set<int> reducible_;                  // alive; every one with at most two neighbours, and some more
  std::vector<Removed> removed_;
  double least_ = 0;
  int most_neighbours_ = 0;
};

}  // namespace

Solution SolvePbqp(const LayoutProblem& problem, const SolveLimits& limits) {
  ReducedProblem reduced(problem);
  reduced.Reduce();
  SolveStats stats;
  PbqpGraph graph(CostsOf(reduced));
  for (int var = 0; var < reduced.size(); ++var)
    stats.variables_eliminated += reduced.options(var).size() > 1;
  graph.ReduceExactly();
  double bound = graph.least();
  if (!graph.AllReduced()) {
    PairwiseCosts rest = graph.Rest();
    Reparametrise(rest);
    bound += LowerBound(rest, limits.bound_table_entries);
    graph.ReplaceRest(std::move(rest));
  }
  if (std::isinf(bound)) return InfeasibleSolution(stats);
  for (graph.ReduceExactly(); !graph.AllReduced(); graph.ReduceExactly()) {
    graph.ReduceMany();
    ++stats.heuristic_choices;
  }
  stats.induced_width = graph.most_neighbours();
  Assignment assignment = reduced.Original(graph.GoBack());
  if (stats.heuristic_choices == 0) return OptimalSolution(problem, std::move(assignment), stats);
  if (!std::isinf(Evaluate(problem, assignment)))
    return BoundedSolution(problem, std::move(assignment), bound, stats);
  Solution lost;
  lost.stats = stats;
  lost.refusal = fmt::format(
      "the heuristic reduction RN lost every assignment with a finite cost, which does not prove that "
      "there is none; {} beam may find one",
      settings::kSolver);
  return lost;
}

}  // namespace tilesmith
