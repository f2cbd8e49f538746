// What a plan costs, computed from the plan and the network alone: the check of every solver's answer, and
// the figures the plan file states.
#pragma once

#include "graph_tuner/costs/corrections.h"
#include "graph_tuner/costs/costs.h"
#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// Sets the seconds of every node, the transforms with their seconds, and the total of both. Convs cost what
// their records say; the rules of problem/build_problem.h apply, and the corrections to all of it. What
// crosses between the plan's threads is charged by its nodes' splits (crossings.h); of a fused pair, in the
// conv. Precondition: plan.nodes are the graph's, in its order, with layouts and, for convs, records; what is
// fused is fused into a conv with such a record, and costs nothing by itself.
void PricePlan(const Graph& graph, CostSource& costs, Plan& plan, const Corrections& corrections = {});

}  // namespace tilesmith
