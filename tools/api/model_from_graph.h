// Models of networks that are no files, for what is built together with the library.
#pragma once

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"
#include "tools/api/tilesmith.h"
#include "tools/cli/machine.h"

namespace tilesmith {

struct ModelFromGraph {
  // Precondition: the graph went through OptimizeGraph, and the plan belongs to it (CheckPlan). Throws Error.
  static Model Compile(Graph graph, const Plan& plan, const DevicePtr& machine);
};

}  // namespace tilesmith
