// In which order beam search gives options to variables: one that keeps the frontier small.
#pragma once

#include <vector>

#include "graph_tuner/pairwise_costs.h"

namespace tilesmith {

struct BeamStep {
  int var = 0;
  std::vector<int> frontier;  // afterwards: chosen variables with neighbours not chosen yet, ascending
};

// Greedy: of the neighbours of the frontier, the variable after which the frontier has the fewest
// combinations of options; where there is no frontier, the lowest variable left, which is where the network
// begins. Ties go to the lowest variable.
std::vector<BeamStep> ChooseBeamOrder(const PairwiseCosts& costs);

}  // namespace tilesmith
