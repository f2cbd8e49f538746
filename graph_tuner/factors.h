// Tables over several variables, and the one operation on them that dynamic programming is made of.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tilesmith {

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

// `option_counts` are indexed by variable. Time: entries of the result times options times factors.
EliminatedVariable MinimiseOut(int var, std::span<const SharedFactor> factors,
                               const std::vector<int>& option_counts);

}  // namespace tilesmith
