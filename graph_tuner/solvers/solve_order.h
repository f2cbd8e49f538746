// In which order the dynamic program eliminates variables: the size of its tables depends on nothing else.
#pragma once

#include <vector>

namespace tilesmith {

struct EliminationOrder {
  std::vector<int> order;    // every variable once
  int width = 0;             // most neighbours a variable has when it is eliminated
  double largest_table = 0;  // product of its neighbours' option counts; the entries the table would have
  double total_entries = 0;  // of all tables
};

// Two classic greedy orders are simulated, and the one with the fewer table entries is taken: min-fill (the
// variable whose elimination connects the fewest pairs of neighbours) and min-table (the variable whose table
// is smallest). Ties go to the smaller degree, then to the smaller index. `neighbours` is symmetric and free
// of self-loops.
EliminationOrder ChooseEliminationOrder(const std::vector<std::vector<int>>& neighbours,
                                        const std::vector<int>& option_counts);

}  // namespace tilesmith
