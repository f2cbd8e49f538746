// Plans of one network, run on this machine by turns.
#pragma once

#include <vector>

#include "graph_tuner/refine/plan_measurement.h"
#include "layouts/measure/duel.h"
#include "tools/network/network_run.h"

namespace tilesmith {

// One measurement for each, for about `seconds` each and at least a few turns of each (of few plans more), in
// turns of some plain runs and some profiled ones, so that what drifts touches plans, whole runs and steps
// alike. A turn's figure is the median of its plain
// runs, `seconds` and those of the steps are the medians of the turns. Of the rounds, in which every plan has
// one turn, only comparable ones count (layouts/measure/rounds.h); where the cores move, up to twice as
// many are held, with up to twice as many turns.
std::vector<PlanMeasurement> MeasurePlans(const Graph& graph, const std::vector<const Plan*>& plans,
                                          const Machine& machine, double seconds,
                                          const CorePlacement& preferred = {});

// A duel of all plans. It is held so many times, for about `seconds` for each plan, the plans made ready
// anew, since how their memory happens to lie is part of what they take.
constexpr int kPlanDuels = 3;
Duel ComparePlans(const Graph& graph, const std::vector<const Plan*>& plans, const Machine& machine,
                  double seconds, const CorePlacement& preferred = {});

}  // namespace tilesmith
