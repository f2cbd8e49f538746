// Bucket elimination, and mini-bucket elimination where it would need tables too large.
//
// Every cost waits in the bucket of the first of its variables to be eliminated. Eliminating a variable
// replaces its bucket by one table over the other variables, the least sum for each of their combinations,
// which goes into the next bucket; what depends on nothing any more adds up to the least cost. Going back
// through the tables gives the assignment.
//
// A bucket whose table would be too large is split into groups with smaller tables, each minimised by itself.
// The result is then a lower bound: for any x,
//     sum_groups f_g(x, o)  >=  sum_groups min_o' f_g(x, o'),
// so each split only lowers what the remaining buckets hold, and the last constants with it.
// Sources: R. Dechter, Bucket elimination, Artificial Intelligence 113, 1999; R. Dechter and I. Rish,
// Mini-buckets, Journal of the ACM 50, 2003.
#pragma once

#include <limits>
#include <vector>

#include "graph_tuner/pairwise_costs.h"

namespace tilesmith {

struct Elimination {
  double least = 0;          // least cost of any assignment; when not exact a lower bound of it
  bool exact = true;         // no bucket was split
  std::vector<int> options;  // an assignment of that cost; empty unless exact and `least` finite
};

// `order` is a permutation of the variables. No table gets more than `table_entries` entries, unless a single
// edge forces it. Ties go to the lower option, the variable eliminated last choosing first.
Elimination Eliminate(const PairwiseCosts& costs, const std::vector<int>& order,
                      double table_entries = std::numeric_limits<double>::infinity());

}  // namespace tilesmith
