// Other configs for the same layouts, tried in the network.
//
// A log says how fast a config is by itself, with its inputs where it left them itself. In a network the
// layer before has just written them, each core its part: whether the parts suit each other, and what else
// the caches hold, decides between configs that are equal by themselves. So the plan is run with the next
// fastest configs of every conv as well, each conv keeps what took least where it is, and the result has to
// prove itself as a whole. Source: original.
#pragma once

#include <vector>

#include "graph_tuner/plan/plan.h"
#include "graph_tuner/refine/plan_measurement.h"
#include "layouts/base/target.h"
#include "ops/graph/graph.h"

namespace tilesmith {

struct VariantOptions {
  int variants = 4;
  double slack = 1.15;  // times as long by itself as the plan's own config, at most
};

// At most `variants` plans with the layouts of `plan`. In each every conv has another record of the same
// workload, layouts and conditions, faster ones first, which differs in two knobs or more from those before
// it; a conv that has no further one keeps that of the plan. Records are taken as FindCandidates takes them.
std::vector<Plan> ConfigVariants(const Graph& graph, const Plan& plan, const std::vector<Record>& records,
                                 const Target& cpu, const VariantOptions& options = {});

// The first plan, each conv with the record of the plan in which its step took least, if that is less than
// `gain` times what it took in the first one. Preconditions: plans as from ConfigVariants behind what they
// are variants of, measured together.
Plan FastestConfigs(const std::vector<Plan>& plans, const std::vector<PlanMeasurement>& measurements,
                    double gain = 0.98);

}  // namespace tilesmith
