#include "graph_tuner/solvers/lower_bound.h"

#include <algorithm>
#include <cmath>

#include "graph_tuner/solvers/bucket_elimination.h"

namespace tilesmith {
namespace {

constexpr int kMaxRounds = 200;
constexpr double kMinGain = 1e-7;  // of a round, relative; below it more rounds are not worth their time

double LeastOf(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

// The least cost of the edge with `option` of `var` chosen.
double LeastBeside(const PairwiseCosts& costs, const PairwiseEdge& edge, int var, int option) {
  double least = kForbidden;
  for (int other = 0; other < costs.Options(edge.Other(var)); ++other)
    least = std::min(least, edge.At(var, option, other));
  return least;
}

void AddBeside(PairwiseCosts& costs, PairwiseEdge& edge, int var, int option, double amount) {
  for (int other = 0; other < costs.Options(edge.Other(var)); ++other)
    (var == edge.a ? edge.costs.at(option, other) : edge.costs.at(other, option)) += amount;
}

class Passes {
 public:
  explicit Passes(PairwiseCosts& costs) : costs_(costs), edges_of_(EdgesOf(costs)) {}

  void Run(bool ascending) {
    for (int i = 0; i < costs_.size(); ++i) Visit(ascending ? i : costs_.size() - 1 - i, ascending);
  }

 private:
  bool Ahead(const PairwiseEdge& edge, int var, bool ascending) const {
    return (edge.Other(var) > var) == ascending;
  }

  void Visit(int var, bool ascending) {
    int ahead = 0, behind = 0;
    for (int e : edges_of_[static_cast<size_t>(var)]) {
      PairwiseEdge& edge = costs_.edges[static_cast<size_t>(e)];
      Collect(edge, var);
      ++(Ahead(edge, var, ascending) ? ahead : behind);
    }
    if (ahead == 0) return;
    const double part = 1.0 / std::max(ahead, behind);
    for (int option = 0; option < costs_.Options(var); ++option) {
      double& held = costs_.unary[static_cast<size_t>(var)][static_cast<size_t>(option)];
      for (int e : edges_of_[static_cast<size_t>(var)]) {
        PairwiseEdge& edge = costs_.edges[static_cast<size_t>(e)];
        if (Ahead(edge, var, ascending)) AddBeside(costs_, edge, var, option, part * held);
      }
      // What is impossible stays so on both sides.
      if (!std::isinf(held)) held = ahead >= behind ? 0 : held - ahead * (part * held);
    }
  }

  void Collect(PairwiseEdge& edge, int var) {
    for (int option = 0; option < costs_.Options(var); ++option) {
      const double least = LeastBeside(costs_, edge, var, option);
      if (least == 0) continue;
      costs_.unary[static_cast<size_t>(var)][static_cast<size_t>(option)] += least;
      if (!std::isinf(least)) AddBeside(costs_, edge, var, option, -least);
    }
  }

  PairwiseCosts& costs_;
  const std::vector<std::vector<int>> edges_of_;
};

}  // namespace

double SumOfLeast(const PairwiseCosts& costs) {
  double sum = 0;
  for (const auto& unary : costs.unary) sum += LeastOf(unary);
  for (const PairwiseEdge& edge : costs.edges) sum += LeastOf(edge.costs.values);
  return sum;
}

void Reparametrise(PairwiseCosts& costs) {
  Passes passes(costs);
  double before = SumOfLeast(costs);
  for (int round = 0; round < kMaxRounds && !std::isinf(before); ++round) {
    passes.Run(true);
    passes.Run(false);
    const double after = SumOfLeast(costs);
    if (after - before <= kMinGain * std::abs(after)) return;
    before = after;
  }
}

double LowerBound(const PairwiseCosts& costs, uint64_t table_entries) {
  return Eliminate(costs, ChooseEliminationOrder(costs).order, static_cast<double>(table_entries)).least;
}

std::vector<std::vector<double>> OptionBounds(const PairwiseCosts& costs) {
  const std::vector<std::vector<int>> edges_of = EdgesOf(costs);
  const double sum = SumOfLeast(costs);
  std::vector<std::vector<double>> bounds = costs.unary;
  for (int var = 0; var < costs.size(); ++var) {
    double others = sum - LeastOf(costs.unary[static_cast<size_t>(var)]);
    for (int e : edges_of[static_cast<size_t>(var)])
      others -= LeastOf(costs.edges[static_cast<size_t>(e)].costs.values);
    for (int option = 0; option < costs.Options(var); ++option) {
      double& bound = bounds[static_cast<size_t>(var)][static_cast<size_t>(option)];
      bound += others;
      for (int e : edges_of[static_cast<size_t>(var)])
        bound += LeastBeside(costs, costs.edges[static_cast<size_t>(e)], var, option);
    }
  }
  return bounds;
}

}  // namespace tilesmith
