// A network's types chosen layer by layer among f32, bf16 and int8, and a plan beside the others.
#pragma once

#include "graph_tuner/planner/plan_network.h"

namespace tilesmith {

// The network is tuned in floats, quantised as far as it can be, and with the layers quantised that pay
// (ChooseTypes); each gets its share of the time. All of them then run by turns: the plan is the fastest
// whose error is within the request's limit, so that it is never slower than a uniform one that is. Where
// layers do more to the outputs than the sum of their squares says, the limit on that is tightened. A model
// that cannot be quantised is tuned in floats alone, with a warning. Precondition: the request
// has no quantization. Otherwise as PlanNetwork.
PlannedNetwork PlanMixed(const PlanRequest& request, const WorkSinks& sinks);

// Runs f32, bf16 where the CPU has it, and the plan by turns, as far as there is time.
void CompareTypes(const PlanRequest& request, const WorkSinks& sinks, PlannedNetwork* planned);

}  // namespace tilesmith
