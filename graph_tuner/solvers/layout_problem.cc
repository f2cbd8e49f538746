#include "graph_tuner/solvers/layout_problem.h"

#include <algorithm>
#include <cmath>

#include "layouts/base/check.h"

namespace tilesmith {
namespace {

using VarId = LayoutProblem::VarId;

bool Reads(const TensorUse& use, int form) {
  return std::find(use.reads.begin(), use.reads.end(), form) != use.reads.end();
}

std::vector<TensorUse> WithoutRepeats(const std::vector<TensorUse>& uses) {
  std::vector<TensorUse> distinct;
  for (const TensorUse& use : uses) {
    const bool known = std::any_of(distinct.begin(), distinct.end(), [&](const TensorUse& other) {
      return other.consumer == use.consumer && other.reads == use.reads;
    });
    if (!known) distinct.push_back(use);
  }
  return distinct;
}

void ChargeSoleReader(LayoutProblem& problem, VarId producer, const CostMatrix& convert, const TensorUse& use,
                      int form) {
  CostMatrix costs(convert.rows, problem.Options(use.consumer));
  for (int p = 0; p < costs.rows; ++p)
    for (int c = 0; c < costs.cols; ++c)
      if (use.reads[static_cast<size_t>(c)] == form) costs.at(p, c) = convert.at(p, form);
  problem.AddPairwise(producer, use.consumer, costs);
}

void ChargeSharedForm(LayoutProblem& problem, VarId producer, const CostMatrix& convert,
                      const std::vector<const TensorUse*>& readers, int form) {
  const VarId made = problem.AddVariable(
      problem.variable(producer).name + ": form " + std::to_string(form) + " made", {0.0, 0.0});
  CostMatrix making(convert.rows, 2);
  for (int p = 0; p < convert.rows; ++p) making.at(p, 1) = convert.at(p, form);
  problem.AddPairwise(producer, made, making);
  for (const TensorUse* use : readers) {
    CostMatrix needs(problem.Options(use->consumer), 2);
    for (int c = 0; c < needs.rows; ++c)
      if (use->reads[static_cast<size_t>(c)] == form) needs.at(c, 0) = kForbidden;
    problem.AddPairwise(use->consumer, made, needs);
  }
}

}  // namespace

VarId LayoutProblem::AddVariable(std::string name, std::vector<double> costs) {
  TILESMITH_CHECK(!costs.empty(), "variable {} has no options", name);
  for (double cost : costs) TILESMITH_CHECK(!std::isnan(cost), "variable {} has a cost that is NaN", name);
  return boost::add_vertex(Variable{std::move(name), std::move(costs)}, graph_);
}

void LayoutProblem::AddUnary(VarId var, int option, double cost) {
  TILESMITH_CHECK(option >= 0 && option < Options(var) && !std::isnan(cost), "{} option {}",
                  variable(var).name, option);
  graph_[var].costs[static_cast<size_t>(option)] += cost;
}

void LayoutProblem::AddPairwise(VarId a, VarId b, const CostMatrix& costs) {
  TILESMITH_CHECK(a != b, "edge from {} to itself", variable(a).name);
  TILESMITH_CHECK(costs.rows == Options(a) && costs.cols == Options(b), "{}x{} costs between {} and {}",
                  costs.rows, costs.cols, variable(a).name, variable(b).name);
  auto [edge, exists] = boost::edge(a, b, graph_);
  const bool swap = a > b;
  if (!exists) {
    const int rows = swap ? costs.cols : costs.rows, cols = swap ? costs.rows : costs.cols;
    edge = boost::add_edge(a, b, CostMatrix(rows, cols), graph_).first;
  }
  CostMatrix& total = graph_[edge];
  for (int i = 0; i < costs.rows; ++i) {
    for (int j = 0; j < costs.cols; ++j) {
      TILESMITH_CHECK(!std::isnan(costs.at(i, j)), "a cost between {} and {} is NaN", variable(a).name,
                      variable(b).name);
      (swap ? total.at(j, i) : total.at(i, j)) += costs.at(i, j);
    }
  }
}

std::pair<VarId, VarId> Endpoints(const LayoutProblem::Boost& graph,
                                  const LayoutProblem::Boost::edge_descriptor& edge) {
  const VarId a = boost::source(edge, graph), b = boost::target(edge, graph);
  return {std::min(a, b), std::max(a, b)};
}

double Evaluate(const LayoutProblem& problem, const Assignment& assignment) {
  TILESMITH_CHECK(assignment.size() == problem.size(), "{} options for {} variables", assignment.size(),
                  problem.size());
  double total = 0;
  for (VarId var = 0; var < problem.size(); ++var)
    total += problem.variable(var).costs.at(static_cast<size_t>(assignment[var]));
  const auto& graph = problem.boost();
  for (auto [it, end] = boost::edges(graph); it != end; ++it) {
    const auto [a, b] = Endpoints(graph, *it);
    total += graph[*it].at(assignment[a], assignment[b]);
  }
  return total;
}

void AddConversions(LayoutProblem& problem, VarId producer, const CostMatrix& convert,
                    const std::vector<TensorUse>& uses) {
  TILESMITH_CHECK(convert.rows == problem.Options(producer), "{} rows for {}", convert.rows,
                  problem.variable(producer).name);
  for (double cost : convert.values) TILESMITH_CHECK(cost >= 0, "a conversion costs {}", cost);
  const std::vector<TensorUse> distinct = WithoutRepeats(uses);
  for (const TensorUse& use : distinct)
    TILESMITH_CHECK(static_cast<int>(use.reads.size()) == problem.Options(use.consumer), "{}",
                    problem.variable(use.consumer).name);
  for (int form = 0; form < convert.cols; ++form) {
    std::vector<const TensorUse*> readers;
    for (const TensorUse& use : distinct)
      if (Reads(use, form)) readers.push_back(&use);
    if (readers.size() == 1) ChargeSoleReader(problem, producer, convert, *readers[0], form);
    if (readers.size() > 1) ChargeSharedForm(problem, producer, convert, readers, form);
  }
}

}  // namespace tilesmith
