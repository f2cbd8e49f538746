// Which nodes a plan computes inside the conv behind them.
#pragma once

#include <map>

#include "graph_tuner/plan/plan.h"
#include "ops/conv/fusion.h"

namespace tilesmith {

// By the id of the conv whose kernel computes both.
using FusedNodes = std::map<Graph::NodeId, FusablePair>;

// Throws Error(kUsage) naming the node when the plan fuses what cannot be fused in this network, or into a
// conv whose record is of something else.
FusedNodes FindFusedNodes(const Graph& graph, const Plan& plan);

}  // namespace tilesmith
