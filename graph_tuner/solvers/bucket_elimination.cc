#include "graph_tuner/solvers/bucket_elimination.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

namespace tilesmith {
namespace {

// Tables over several variables, and the one operation on them that dynamic programming is made of.

// A cost that depends on the variables in `scope`, all different; row-major, the last one fastest.
struct Factor {
  std::vector<int> scope;
  std::vector<double> table;
};
using SharedFactor = std::shared_ptr<const Factor>;

// What is left of some factors when one variable, that all of them mention, takes its best option:
//     least[s] = min_o sum_f f(s, o),   s running through the combinations of all other variables.
struct EliminatedVariable {
  Factor least;                // its scope ascends
  std::vector<uint16_t> best;  // the option attaining least[s]; of several the lowest
};

// A factor read while its variables run through all combinations of the result's scope.
struct Cursor {
  const double* table = nullptr;
  size_t offset = 0;
  size_t var_stride = 0;             // of the variable being eliminated
  std::vector<size_t> scope_stride;  // of each variable of the scope; 0 when not in the factor
};

std::vector<int> OthersOf(int var, std::span<const SharedFactor> factors) {
  std::vector<int> others;
  for (const SharedFactor& factor : factors)
    for (int other : factor->scope)
      if (other != var) others.push_back(other);
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  return others;
}

Cursor CursorOf(const Factor& factor, int var, const std::vector<int>& scope,
                const std::vector<int>& option_counts) {
  Cursor cursor{factor.table.data(), 0, 0, std::vector<size_t>(scope.size(), 0)};
  size_t stride = 1;
  for (size_t i = factor.scope.size(); i-- > 0;) {
    const int other = factor.scope[i];
    if (other == var) {
      cursor.var_stride = stride;
    } else {
      const auto at = std::lower_bound(scope.begin(), scope.end(), other);
      cursor.scope_stride[static_cast<size_t>(at - scope.begin())] = stride;
    }
    stride *= static_cast<size_t>(option_counts[static_cast<size_t>(other)]);
  }
  return cursor;
}

void Advance(std::vector<Cursor>& cursors, const std::vector<int>& scope,
             const std::vector<int>& option_counts, std::vector<size_t>& digits) {
  for (size_t i = scope.size(); i-- > 0;) {
    const auto count = static_cast<size_t>(option_counts[static_cast<size_t>(scope[i])]);
    if (++digits[i] < count) {
      for (Cursor& cursor : cursors) cursor.offset += cursor.scope_stride[i];
      return;
    }
    digits[i] = 0;
    for (Cursor& cursor : cursors) cursor.offset -= (count - 1) * cursor.scope_stride[i];
  }
}

// `option_counts` are indexed by variable. Time: entries of the result times options times factors.
EliminatedVariable MinimiseOut(int var, std::span<const SharedFactor> factors,
                               const std::vector<int>& option_counts) {
  EliminatedVariable result;
  const std::vector<int>& scope = result.least.scope = OthersOf(var, factors);
  std::vector<Cursor> cursors;
  cursors.reserve(factors.size());
  for (const SharedFactor& factor : factors) cursors.push_back(CursorOf(*factor, var, scope, option_counts));
  size_t entries = 1;
  for (int other : scope) entries *= static_cast<size_t>(option_counts[static_cast<size_t>(other)]);
  result.least.table.resize(entries);
  result.best.resize(entries);
  std::vector<double> sums(static_cast<size_t>(option_counts[static_cast<size_t>(var)]));
  std::vector<size_t> digits(scope.size(), 0);
  for (size_t entry = 0; entry < entries; ++entry) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (const Cursor& cursor : cursors)
      for (size_t option = 0; option < sums.size(); ++option)
        sums[option] += cursor.table[cursor.offset + option * cursor.var_stride];
    const auto best = std::min_element(sums.begin(), sums.end());
    result.least.table[entry] = *best;
    result.best[entry] = static_cast<uint16_t>(best - sums.begin());
    Advance(cursors, scope, option_counts, digits);
  }
  return result;
}

// A part of one bucket; each group is minimised by itself.
struct Group {
  std::vector<int> scope;  // ascending
  std::vector<SharedFactor> factors;
};

// What eliminating `var` leaves for the way back.
struct Choice {
  int var = 0;
  std::vector<int> scope;
  std::vector<uint16_t> best;  // for each combination of the scope
};

class Buckets {
 public:
  Buckets(const PairwiseCosts& costs, const std::vector<int>& order, double table_entries)
      : counts_(OptionCounts(costs)),
        table_entries_(table_entries),
        step_of_(order.size()),
        bucket_of_(order.size()) {
    for (size_t step = 0; step < order.size(); ++step)
      step_of_[static_cast<size_t>(order[step])] = static_cast<int>(step);
    for (int var = 0; var < costs.size(); ++var) Place({{var}, costs.unary[static_cast<size_t>(var)]});
    for (const PairwiseEdge& edge : costs.edges) Place({{edge.a, edge.b}, edge.costs.values});
    for (int var : order) EliminateOne(var);
    if (result_.exact && !std::isinf(result_.least)) BackTrack();
  }

  Elimination result() && { return std::move(result_); }

 private:
  void Place(Factor factor) {
    if (factor.scope.empty()) {
      result_.least += factor.table[0];
      return;
    }
    const int first = *std::min_element(factor.scope.begin(), factor.scope.end(), [&](int a, int b) {
      return step_of_[static_cast<size_t>(a)] < step_of_[static_cast<size_t>(b)];
    });
    bucket_of_[static_cast<size_t>(first)].push_back(std::make_shared<const Factor>(std::move(factor)));
  }

  void EliminateOne(int var) {
    std::vector<Group> groups = GroupsOf(var);
    if (groups.size() > 1) result_.exact = false;
    for (const Group& group : groups) {
      EliminatedVariable eliminated = MinimiseOut(var, group.factors, counts_);
      if (result_.exact) choices_.push_back({var, eliminated.least.scope, std::move(eliminated.best)});
      Place(std::move(eliminated.least));
    }
  }

  // First fit, the largest factors first.
  std::vector<Group> GroupsOf(int var) {
    std::vector<SharedFactor> factors = std::move(bucket_of_[static_cast<size_t>(var)]);
    if (!std::isinf(table_entries_)) {
      std::stable_sort(factors.begin(), factors.end(), [](const SharedFactor& a, const SharedFactor& b) {
        return a->table.size() > b->table.size();
      });
    }
    std::vector<Group> groups;
    for (SharedFactor& factor : factors) {
      std::vector<int> scope = factor->scope;
      std::sort(scope.begin(), scope.end());
      const auto fits = std::ranges::find_if(groups, [&](const Group& group) {
        return Entries(Union(group.scope, scope), var) <= table_entries_;
      });
      Group& group = fits == groups.end() ? groups.emplace_back() : *fits;
      group.scope = Union(group.scope, scope);
      group.factors.push_back(std::move(factor));
    }
    return groups;
  }

  static std::vector<int> Union(const std::vector<int>& a, const std::vector<int>& b) {
    std::vector<int> both;
    both.reserve(a.size() + b.size());
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return both;
  }

  double Entries(const std::vector<int>& scope, int without) const {
    double entries = 1;
    for (int var : scope)
      if (var != without) entries *= counts_[static_cast<size_t>(var)];
    return entries;
  }

  void BackTrack() {
    std::vector<int>& options = result_.options;
    options.resize(counts_.size());
    for (auto choice = choices_.rbegin(); choice != choices_.rend(); ++choice) {
      size_t index = 0;
      for (int other : choice->scope)
        index = index * static_cast<size_t>(counts_[static_cast<size_t>(other)]) +
                static_cast<size_t>(options[static_cast<size_t>(other)]);
      options[static_cast<size_t>(choice->var)] = choice->best[index];
    }
  }

  const std::vector<int> counts_;
  const double table_entries_;
  std::vector<int> step_of_;  // of each variable: when it is eliminated
  std::vector<std::vector<SharedFactor>> bucket_of_;
  std::vector<Choice> choices_;
  Elimination result_;
};

}  // namespace

Elimination Eliminate(const PairwiseCosts& costs, const std::vector<int>& order, double table_entries) {
  return Buckets(costs, order, table_entries).result();
}

}  // namespace tilesmith
