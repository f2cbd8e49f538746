// Schedules as a tuning log has them, without a graph tuner: a network's, and what a fused workload competes
// with.
#pragma once

#include <map>
#include <string>

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"
#include "tools/bench/our_conv.h"
#include "tools/cli/machine.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {

// The fastest record of each workload, by its canonical text.
using FastestRecords = std::map<std::string, Record>;

// Picks the fastest record of each workload, whatever its layouts.
FastestRecords FastestOf(const BestByWorkload& best);

// Every task in its fastest schedule, what lies between in the layouts that come of it; where there is none,
// in the default one. HeuristicPlan where there is none of any task.
Plan PlanOfFastest(const Graph& graph, const DevicePtr& machine, const FastestRecords& fastest);

// The schedule by which a plan's node computes. `planned` says that the plan is a file's, not one of these.
Schedule ScheduleIn(const Record& record, bool planned);

// A fused workload competes with its parts, one kernel after the other. These are the two records with the
// least sum of seconds that agree on the layout between them; of input ops, the main conv's fastest. Default
// schedules where records lack. Precondition: a fused workload.
SeparateSchedules FastestSeparate(const ConvWorkload& workload, const BestByWorkload& records,
                                  const Target& cpu);

// The schedule without tuning: the default of the first template that supports the workload, of those that
// multiply bf16 where `type` is that. Throws Error(kNoCandidate) when none does.
Schedule DefaultSchedule(const ConvWorkload& workload, const Target& cpu, DataType type = DataType::kF32);

}  // namespace tilesmith
