// A network's plan as a tuning log has it, without a graph tuner.
#pragma once

#include <map>
#include <string>

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"
#include "templates/device/device.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {

// The fastest record of each workload, by its canonical text.
using FastestRecords = std::map<std::string, Record>;

// Picks the fastest record of each workload, whatever its layouts.
FastestRecords FastestOf(const BestByWorkload& best);

// Every task in its fastest schedule, what lies between in the layouts that come of it; where there is none,
// in the default one. HeuristicPlan where there is none of any task.
Plan PlanOfFastest(const Graph& graph, const DevicePtr& machine, const FastestRecords& fastest);

}  // namespace tilesmith
