#include "graph_tuner/solvers/solve_order.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace tilesmith {
namespace {

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

EliminationOrder ChooseEliminationOrder(const std::vector<std::vector<int>>& neighbours,
                                        const std::vector<int>& option_counts) {
  EliminationOrder fill = Simulation(neighbours, option_counts, Rule::kMinFill).Run();
  EliminationOrder table = Simulation(neighbours, option_counts, Rule::kMinTable).Run();
  return table.total_entries < fill.total_entries ? table : fill;
}

}  // namespace tilesmith
