// The conversions a plan charges, transforms and copies, by tensor.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"

namespace tilesmith {

using ConversionKey = std::pair<std::string, LayoutPair>;  // tensor, canonical layouts (ConversionOf)

// What the plan lists once, or several times at the same price.
struct PlannedConversion {
  double seconds = 0, crossing_seconds = 0;
  int times = 0;
};

// Entries for tensors that the graph does not have are left out: a forced plan may be of another network.
std::map<ConversionKey, PlannedConversion> PlannedConversions(const Graph& graph, const Plan& plan);

}  // namespace tilesmith
