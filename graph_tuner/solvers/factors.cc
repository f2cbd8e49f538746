#include "graph_tuner/solvers/factors.h"

#include <algorithm>

namespace tilesmith {
namespace {

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

}  // namespace

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

}  // namespace tilesmith
