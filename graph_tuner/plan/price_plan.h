// What a plan costs, computed from the plan and the network alone: the check of every solver's answer, and
// the figures the plan file states.
#pragma once

#include "graph_tuner/costs/corrections.h"
#include "graph_tuner/costs/costs.h"
#include "graph_tuner/plan/plan.h"
#include "layouts/measure/core_placement.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// Sets the seconds of every node, the transforms with their seconds, and the total of both. Convs cost what
// their records say; the rules of problem/build_problem.h apply, and the corrections to all of it. What
// crosses between the plan's threads is charged by its nodes' splits (crossings.h), for cores placed like
// `at`; of a fused pair, in the conv. Precondition: plan.nodes are the graph's, in its order, with layouts
// and, for convs, records; what is fused is fused into a conv with such a record, and costs nothing by
// itself.
void PricePlan(const Graph& graph, CostSource& costs, Plan& plan, const Corrections& corrections = {},
               const CorePlacement& at = {});

// The same for where the plan was measured, which becomes its placement, and its prediction for every other
// distance of the cores that the costs know.
void PriceWhereMeasured(const Graph& graph, CostSource& costs, Plan& plan, const Corrections& corrections,
                        const CorePlacement& placement);
// The predictions alone.
void PredictAtDistances(const Graph& graph, CostSource& costs, Plan& plan, const Corrections& corrections);

}  // namespace tilesmith
