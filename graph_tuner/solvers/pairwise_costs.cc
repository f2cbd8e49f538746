#include "graph_tuner/solvers/pairwise_costs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <set>
#include <tuple>

#include "layouts/base/check.h"

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

enum class Rule { kMinFill, kMinTable };

class Simulation {
 public:
  Simulation(const std::vector<std::vector<int>>& neighbours, const std::vector<int>& option_counts,
             Rule rule)
      : option_counts_(option_counts), rule_(rule) {
    for (const auto& list : neighbours) neighbours_.emplace_back(list.begin(), list.end());
    keys_.resize(neighbours_.size());
    for (int var = 0; var < static_cast<int>(neighbours_.size()); ++var) {
      keys_[static_cast<size_t>(var)] = KeyOf(var);
      queue_.insert(keys_[static_cast<size_t>(var)]);
    }
  }

  EliminationOrder Run() {
    EliminationOrder result;
    while (!queue_.empty()) {
      const int var = std::get<2>(*queue_.begin());
      const double table = TableOf(var);
      result.order.push_back(var);
      result.width = std::max(result.width, static_cast<int>(neighbours_[static_cast<size_t>(var)].size()));
      result.largest_table = std::max(result.largest_table, table);
      result.total_entries += table;
      Eliminate(var);
    }
    return result;
  }

 private:
  using Key = std::tuple<double, size_t, int>;  // score, degree, variable

  double TableOf(int var) const {
    double entries = 1;
    for (int other : neighbours_[static_cast<size_t>(var)])
      entries *= option_counts_[static_cast<size_t>(other)];
    return entries;
  }

  double FillOf(int var) const {
    const auto& around = neighbours_[static_cast<size_t>(var)];
    double missing = 0;
    for (auto a = around.begin(); a != around.end(); ++a)
      for (auto b = std::next(a); b != around.end(); ++b)
        missing += !neighbours_[static_cast<size_t>(*a)].count(*b);
    return missing;
  }

  Key KeyOf(int var) const {
    return {rule_ == Rule::kMinFill ? FillOf(var) : TableOf(var),
            neighbours_[static_cast<size_t>(var)].size(), var};
  }

  void Eliminate(int var) {
    queue_.erase(keys_[static_cast<size_t>(var)]);
    const std::set<int> around = std::move(neighbours_[static_cast<size_t>(var)]);
    std::set<int> touched = around;
    for (int a : around) {
      neighbours_[static_cast<size_t>(a)].erase(var);
      for (int b : around) {
        if (a == b) continue;
        const bool added = neighbours_[static_cast<size_t>(a)].insert(b).second;
        if (!added || rule_ != Rule::kMinFill) continue;
        // Whoever has both a and b as neighbours has one pair less to connect.
        for (int c : neighbours_[static_cast<size_t>(a)])
          if (neighbours_[static_cast<size_t>(b)].count(c)) touched.insert(c);
      }
    }
    for (int other : touched) {
      queue_.erase(keys_[static_cast<size_t>(other)]);
      keys_[static_cast<size_t>(other)] = KeyOf(other);
      queue_.insert(keys_[static_cast<size_t>(other)]);
    }
  }

  const std::vector<int>& option_counts_;
  const Rule rule_;
  std::vector<std::set<int>> neighbours_;
  std::vector<Key> keys_;
  std::set<Key> queue_;
};

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

EliminationOrder ChooseEliminationOrder(const std::vector<std::vector<int>>& neighbours,
                                        const std::vector<int>& option_counts) {
  EliminationOrder fill = Simulation(neighbours, option_counts, Rule::kMinFill).Run();
  EliminationOrder table = Simulation(neighbours, option_counts, Rule::kMinTable).Run();
  return table.total_entries < fill.total_entries ? table : fill;
}

PairwiseCosts CostsOf(const ReducedProblem& problem) {
  PairwiseCosts costs;
  for (int var = 0; var < problem.size(); ++var) {
    TILESMITH_CHECK(problem.options(var).size() <= UINT16_MAX, "{} options", problem.options(var).size());
    costs.unary.push_back(problem.unary(var));
  }
  for (const ReducedProblem::Edge& edge : problem.edges())
    if (edge.alive) costs.edges.push_back({edge.a, edge.b, edge.costs});
  return costs;
}

std::vector<int> OptionCounts(const PairwiseCosts& costs) {
  std::vector<int> counts;
  counts.reserve(costs.unary.size());
  for (int var = 0; var < costs.size(); ++var) counts.push_back(costs.Options(var));
  return counts;
}

std::vector<std::vector<int>> EdgesOf(const PairwiseCosts& costs) {
  std::vector<std::vector<int>> edges_of(costs.unary.size());
  for (size_t e = 0; e < costs.edges.size(); ++e) {
    edges_of[static_cast<size_t>(costs.edges[e].a)].push_back(static_cast<int>(e));
    edges_of[static_cast<size_t>(costs.edges[e].b)].push_back(static_cast<int>(e));
  }
  return edges_of;
}

EliminationOrder ChooseEliminationOrder(const PairwiseCosts& costs) {
  std::vector<std::vector<int>> neighbours(costs.unary.size());
  for (const PairwiseEdge& edge : costs.edges) {
    neighbours[static_cast<size_t>(edge.a)].push_back(edge.b);
    neighbours[static_cast<size_t>(edge.b)].push_back(edge.a);
  }
  return ChooseEliminationOrder(neighbours, OptionCounts(costs));
}

}  // namespace tilesmith
