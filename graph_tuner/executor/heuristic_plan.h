// A plan for those who have not tuned.
#pragma once

#include "graph_tuner/plan/plan.h"
#include "layouts/base/target.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// The schedule without tuning: each template's default, one block size (the CPU's vector width) everywhere it
// can.
Plan HeuristicPlan(const Graph& graph, const Target& cpu, int threads);

}  // namespace tilesmith
