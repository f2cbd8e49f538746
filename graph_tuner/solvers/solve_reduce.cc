#include "graph_tuner/solvers/solve_reduce.h"

#include <algorithm>
#include <cmath>
#include <deque>

namespace tilesmith {
namespace {

void RemoveRow(CostMatrix& m, int row) {
  const auto begin = m.values.begin() + std::ptrdiff_t(row) * m.cols;
  m.values.erase(begin, begin + m.cols);
  --m.rows;
}

void RemoveColumn(CostMatrix& m, int col) {
  CostMatrix result(m.rows, m.cols - 1);
  for (int i = 0; i < m.rows; ++i)
    for (int j = 0; j < result.cols; ++j) result.at(i, j) = m.at(i, j < col ? j : j + 1);
  m = std::move(result);
}

// Takes `amount` off an entry; what is infinite throughout becomes zero, its price now being unary.
void Lower(double& entry, double amount) { entry = std::isinf(amount) ? 0 : entry - amount; }

}  // namespace

MovedCosts MoveIntoUnary(CostMatrix& m, std::vector<double>& rows, std::vector<double>& cols) {
  MovedCosts moved;
  for (int i = 0; i < m.rows; ++i) {
    double least = kForbidden;
    for (int j = 0; j < m.cols; ++j) least = std::min(least, m.at(i, j));
    if (least == 0) continue;
    rows[static_cast<size_t>(i)] += least;
    moved.found_forbidden = moved.found_forbidden || std::isinf(least);
    for (int j = 0; j < m.cols; ++j) Lower(m.at(i, j), least);
  }
  for (int j = 0; j < m.cols; ++j) {
    double least = kForbidden;
    for (int i = 0; i < m.rows; ++i) least = std::min(least, m.at(i, j));
    if (least == 0) continue;
    cols[static_cast<size_t>(j)] += least;
    moved.found_forbidden = moved.found_forbidden || std::isinf(least);
    for (int i = 0; i < m.rows; ++i) Lower(m.at(i, j), least);
  }
  moved.any_left = std::any_of(m.values.begin(), m.values.end(), [](double cost) { return cost != 0; });
  return moved;
}

ReducedProblem::ReducedProblem(const LayoutProblem& problem) : edges_of_(problem.size()) {
  for (size_t var = 0; var < problem.size(); ++var) {
    unary_.push_back(problem.variable(var).costs);
    options_.emplace_back();
    for (int option = 0; option < problem.Options(var); ++option) options_.back().push_back(option);
  }
  const auto& graph = problem.boost();
  for (auto [it, end] = boost::edges(graph); it != end; ++it) {
    const auto [low, high] = Endpoints(graph, *it);
    edges_of_[low].push_back(static_cast<int>(edges_.size()));
    edges_of_[high].push_back(static_cast<int>(edges_.size()));
    edges_.push_back({static_cast<int>(low), static_cast<int>(high), graph[*it], true});
  }
}

bool ReducedProblem::MoveIntoUnary(Edge& edge) {
  const MovedCosts moved = tilesmith::MoveIntoUnary(edge.costs, unary_[static_cast<size_t>(edge.a)],
                                                    unary_[static_cast<size_t>(edge.b)]);
  edge.alive = moved.any_left;
  return !moved.any_left || moved.found_forbidden;
}

bool ReducedProblem::Dominates(int var, int j, int i) const {
  double change = unary_[static_cast<size_t>(var)][static_cast<size_t>(j)] -
                  unary_[static_cast<size_t>(var)][static_cast<size_t>(i)];
  for (int index : edges_of_[static_cast<size_t>(var)]) {
    const Edge& edge = edges_[static_cast<size_t>(index)];
    if (!edge.alive) continue;
    const bool rows = edge.a == var;
    const int others = rows ? edge.costs.cols : edge.costs.rows;
    double worst = -kForbidden;
    for (int k = 0; k < others; ++k) {
      const double before = rows ? edge.costs.at(i, k) : edge.costs.at(k, i);
      const double after = rows ? edge.costs.at(j, k) : edge.costs.at(k, j);
      if (std::isinf(before)) continue;
      worst = std::max(worst, after - before);
    }
    change += worst;
    if (change == kForbidden) return false;
  }
  return change <= 0;
}

void ReducedProblem::RemoveOption(int var, int position) {
  options_[static_cast<size_t>(var)].erase(options_[static_cast<size_t>(var)].begin() + position);
  unary_[static_cast<size_t>(var)].erase(unary_[static_cast<size_t>(var)].begin() + position);
  for (int index : edges_of_[static_cast<size_t>(var)]) {
    Edge& edge = edges_[static_cast<size_t>(index)];
    if (!edge.alive) continue;
    if (edge.a == var)
      RemoveRow(edge.costs, position);
    else
      RemoveColumn(edge.costs, position);
  }
}

bool ReducedProblem::RemoveDominated(int var) {
  const auto& unary = unary_[static_cast<size_t>(var)];
  bool changed = false;
  // From the last option on, so that of two equal ones the first stays.
  for (int i = static_cast<int>(unary.size()) - 1; i >= 0 && unary.size() > 1; --i) {
    bool dominated = std::isinf(unary[static_cast<size_t>(i)]);
    for (int j = 0; j < static_cast<int>(unary.size()) && !dominated; ++j)
      dominated = j != i && !std::isinf(unary[static_cast<size_t>(j)]) && Dominates(var, j, i);
    if (!dominated) continue;
    RemoveOption(var, i);
    changed = true;
  }
  return changed;
}

Assignment ReducedProblem::Original(const std::vector<int>& positions) const {
  Assignment assignment;
  for (size_t var = 0; var < options_.size(); ++var)
    assignment.push_back(options_[var].at(static_cast<size_t>(positions.at(var))));
  return assignment;
}

void ReducedProblem::Reduce() {
  std::deque<int> queue;
  std::vector<bool> queued(options_.size(), true);
  for (int var = 0; var < size(); ++var) queue.push_back(var);
  auto enqueue = [&](int var) {
    if (queued[static_cast<size_t>(var)]) return;
    queued[static_cast<size_t>(var)] = true;
    queue.push_back(var);
  };
  while (!queue.empty()) {
    const int var = queue.front();
    queue.pop_front();
    queued[static_cast<size_t>(var)] = false;
    bool changed = false;
    for (int index : edges_of_[static_cast<size_t>(var)]) {
      Edge& edge = edges_[static_cast<size_t>(index)];
      if (edge.alive && MoveIntoUnary(edge)) changed = true;
    }
    if (RemoveDominated(var)) {
      changed = true;
      enqueue(var);
    }
    if (!changed) continue;
    for (int index : edges_of_[static_cast<size_t>(var)]) {
      enqueue(edges_[static_cast<size_t>(index)].a);
      enqueue(edges_[static_cast<size_t>(index)].b);
    }
  }
}

}  // namespace tilesmith
