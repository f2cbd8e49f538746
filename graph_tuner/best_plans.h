// The best plans of a network, and where they differ.
#pragma once

#include <vector>

#include "graph_tuner/explain.h"

namespace tilesmith {

// A node that two plans compute in different layouts.
struct NodeChange {
  NodePlan best, here;
};

struct RankedPlan {
  Plan plan;
  std::vector<NodeChange> changes;  // against network.best, in graph order
};

// The `count` cheapest plans that differ pairwise in a node's choice, cheapest first; fewer where there are
// no more. Of plans as good as network.best, any may come first. Throws Error(kNoCandidate) when the problem
// is too large (k_best.h).
std::vector<RankedPlan> BestPlans(const SolvedNetwork& network, int count);

}  // namespace tilesmith
