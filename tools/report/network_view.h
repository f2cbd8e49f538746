// A network and its plan as data to draw: nodes, the tensors between them, transforms.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// {"nodes": [...], "edges": [...], "transforms": [...]}, the data's members of these names (README.md).
// Without a graph there are the plan's nodes and transforms only. `steps` are rows of a profile, which say
// what was measured. Throws Error as ResolveSchedules does for a plan that is not one for the graph.
nlohmann::ordered_json NetworkView(const Plan& plan, const Graph* graph,
                                   const std::vector<nlohmann::ordered_json>& steps);

}  // namespace tilesmith
