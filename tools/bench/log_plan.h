// A network in the schedules of a tuning log, without a graph tuner.
#pragma once

#include <map>
#include <string>

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"
#include "tools/bench/our_conv.h"
#include "tools/cli/machine.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {

// By canonical workload.
using FastestRecords = std::map<std::string, Record>;

// Of each workload the fastest, whatever its layouts.
FastestRecords FastestOf(const BestByWorkload& best);

// Every task in its fastest schedule, what lies between in the layouts that come of it; where there is none,
// in the default one. HeuristicPlan where there is none of any task.
Plan PlanOfFastest(const Graph& graph, const DevicePtr& machine, const FastestRecords& fastest);

// What a plan's node computes by. `planned`: the plan is a file's, and not one of these.
Schedule ScheduleIn(const Record& record, bool planned);

// What a fused workload competes with: its parts, one kernel after the other.
//
// The two records with the least sum of seconds that agree on the layout between them; of input ops, the main
// conv's fastest. Default schedules where records lack. Precondition: a fused workload.
SeparateSchedules FastestSeparate(const ConvWorkload& workload, const BestByWorkload& records,
                                  const Target& cpu);

// The schedule without tuning: the default of the first template that supports the workload, of those that
// multiply bf16 where `type` is that. Throws Error(kNoCandidate) when none does.
Schedule DefaultSchedule(const ConvWorkload& workload, const Target& cpu, DataType type = DataType::kF32);

}  // namespace tilesmith
