// What a plan that has been run knows about costs in context.
#pragma once

#include "graph_tuner/costs/corrections.h"
#include "graph_tuner/costs/costs.h"
#include "graph_tuner/plan/plan.h"

namespace tilesmith {

// The corrections under which the plan costs what it says: those that it carries; else its own predicted
// seconds, of every node and of every conversion of a tensor, are taken for measurements in context. Other
// options of the same node are corrected by the node's ratio (corrections.h). Of a plan that was never
// corrected, nothing changes. Precondition: CheckPlan passes (plan_file.h).
Corrections CorrectionsOf(const Graph& graph, const Plan& plan, CostSource& costs);

}  // namespace tilesmith
