#include "graph_tuner/solve_dp.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "graph_tuner/solve_order.h"
#include "graph_tuner/solve_reduce.h"
#include "layouts/base/check.h"

namespace tilesmith {
namespace {

// A cost that depends on the variables in `scope`; row-major, the last one fastest.
struct Factor {
  std::vector<int> scope;
  std::vector<double> table;
};

// What eliminating `var` leaves for the way back: its best option for each combination of `scope`.
struct Bucket {
  int var = 0;
  std::vector<int> scope;
  std::vector<uint16_t> best;
};

// A factor read while its variables run through all combinations of a bucket's scope.
struct Cursor {
  const double* table = nullptr;
  size_t offset = 0;
  size_t var_stride = 0;             // of the variable being eliminated
  std::vector<size_t> scope_stride;  // of each variable of the bucket's scope; 0 when not in the factor
};

class Elimination {
 public:
  explicit Elimination(const ReducedProblem& problem)
      : problem_(problem), factors_of_(size_t(problem.size())) {
    for (int var = 0; var < problem.size(); ++var) AddFactor({{var}, problem.unary(var)});
    for (const auto& edge : problem.edges())
      if (edge.alive) AddFactor({{edge.a, edge.b}, edge.costs.values});
  }

  void Eliminate(int var) {
    std::vector<std::shared_ptr<const Factor>> factors = std::move(factors_of_[size_t(var)]);
    Bucket bucket{var, {}, {}};
    for (const auto& factor : factors) {
      for (int other : factor->scope) {
        if (other == var) continue;
        bucket.scope.push_back(other);
        auto& list = factors_of_[size_t(other)];
        std::erase(list, factor);
      }
    }
    std::sort(bucket.scope.begin(), bucket.scope.end());
    bucket.scope.erase(std::unique(bucket.scope.begin(), bucket.scope.end()), bucket.scope.end());

    std::vector<Cursor> cursors;
    for (const auto& factor : factors) cursors.push_back(CursorOf(*factor, bucket));
    Factor message{bucket.scope, {}};
    Minimise(cursors, bucket, message.table);
    buckets_.push_back(std::move(bucket));
    if (!message.scope.empty())
      AddFactor(std::move(message));
    else
      feasible_ = feasible_ && !std::isinf(message.table[0]);
  }

  bool feasible() const { return feasible_; }

  // Precondition: every variable is eliminated.
  Assignment BackTrack() const {
    std::vector<int> position(size_t(problem_.size()), 0);
    Assignment assignment(size_t(problem_.size()), 0);
    for (auto bucket = buckets_.rbegin(); bucket != buckets_.rend(); ++bucket) {
      size_t index = 0;
      for (int other : bucket->scope) index = index * Count(other) + size_t(position[size_t(other)]);
      position[size_t(bucket->var)] = bucket->best[index];
      assignment[size_t(bucket->var)] = problem_.options(bucket->var)[bucket->best[index]];
    }
    return assignment;
  }

 private:
  size_t Count(int var) const { return problem_.options(var).size(); }

  void AddFactor(Factor factor) {
    const auto shared = std::make_shared<const Factor>(std::move(factor));
    for (int var : shared->scope) factors_of_[size_t(var)].push_back(shared);
  }

  Cursor CursorOf(const Factor& factor, const Bucket& bucket) const {
    Cursor cursor{factor.table.data(), 0, 0, std::vector<size_t>(bucket.scope.size(), 0)};
    size_t stride = 1;
    for (size_t i = factor.scope.size(); i-- > 0;) {
      const int var = factor.scope[i];
      if (var == bucket.var) {
        cursor.var_stride = stride;
      } else {
        const auto at = std::lower_bound(bucket.scope.begin(), bucket.scope.end(), var);
        cursor.scope_stride[size_t(at - bucket.scope.begin())] = stride;
      }
      stride *= Count(var);
    }
    return cursor;
  }

  // For every combination of the scope: the least sum of the cursors over the options of bucket.var.
  void Minimise(std::vector<Cursor>& cursors, Bucket& bucket, std::vector<double>& least) const {
    size_t entries = 1;
    for (int other : bucket.scope) entries *= Count(other);
    least.resize(entries);
    bucket.best.resize(entries);
    std::vector<double> sums(Count(bucket.var));
    std::vector<size_t> digits(bucket.scope.size(), 0);
    for (size_t entry = 0; entry < entries; ++entry) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (const Cursor& cursor : cursors)
        for (size_t option = 0; option < sums.size(); ++option)
          sums[option] += cursor.table[cursor.offset + option * cursor.var_stride];
      const auto best = std::min_element(sums.begin(), sums.end());
      least[entry] = *best;
      bucket.best[entry] = uint16_t(best - sums.begin());
      Advance(cursors, bucket.scope, digits);
    }
  }

  void Advance(std::vector<Cursor>& cursors, const std::vector<int>& scope,
               std::vector<size_t>& digits) const {
    for (size_t i = scope.size(); i-- > 0;) {
      const size_t count = Count(scope[i]);
      if (++digits[i] < count) {
        for (Cursor& cursor : cursors) cursor.offset += cursor.scope_stride[i];
        return;
      }
      digits[i] = 0;
      for (Cursor& cursor : cursors) cursor.offset -= (count - 1) * cursor.scope_stride[i];
    }
  }

  const ReducedProblem& problem_;
  std::vector<std::vector<std::shared_ptr<const Factor>>> factors_of_;
  std::vector<Bucket> buckets_;
  bool feasible_ = true;
};

EliminationOrder OrderOf(const ReducedProblem& problem) {
  std::vector<std::vector<int>> neighbours(size_t(problem.size()));
  std::vector<int> option_counts;
  for (int var = 0; var < problem.size(); ++var) {
    TILESMITH_CHECK(problem.options(var).size() <= UINT16_MAX, "{} options", problem.options(var).size());
    option_counts.push_back(int(problem.options(var).size()));
  }
  for (const auto& edge : problem.edges()) {
    if (!edge.alive) continue;
    neighbours[size_t(edge.a)].push_back(edge.b);
    neighbours[size_t(edge.b)].push_back(edge.a);
  }
  return ChooseEliminationOrder(neighbours, option_counts);
}

}  // namespace

Solution SolveDp(const LayoutProblem& problem, const SolveLimits& limits) {
  ReducedProblem reduced(problem);
  reduced.Reduce();
  const EliminationOrder order = OrderOf(reduced);

  Solution solution;
  solution.stats.induced_width = order.width;
  solution.stats.largest_table = uint64_t(std::min(order.largest_table, 1e18));
  solution.stats.total_entries = uint64_t(std::min(order.total_entries, 1e18));
  const double limit = double(limits.table_entries);
  if (order.largest_table > limit || order.total_entries > 8 * limit) {
    solution.refusal = fmt::format(
        "too wide for exact dynamic programming: induced width {}, largest table {:.3g} entries, all tables "
        "{:.3g} (limits: {} and {})",
        order.width, order.largest_table, order.total_entries, limits.table_entries,
        8 * limits.table_entries);
    return solution;
  }
  Elimination elimination(reduced);
  for (int var : order.order) {
    elimination.Eliminate(var);
    solution.stats.variables_eliminated += reduced.options(var).size() > 1;
  }
  if (!elimination.feasible()) {
    solution.refusal = "no assignment has a finite cost";
    return solution;
  }
  solution.assignment = elimination.BackTrack();
  solution.cost = Evaluate(problem, solution.assignment);
  solution.certificate = "optimal";
  return solution;
}

}  // namespace tilesmith
