// Plans of one network, run on this machine: one by itself, or two side by side.
#pragma once

#include "graph_tuner/plan_measurement.h"
#include "tools/bench/duel.h"
#include "tools/network/network_run.h"

namespace tilesmith {

// Whole and part by turns for about `seconds`, at least some runs whatever they take: plain runs, profiled
// ones, and plain ones again, so that what drifts touches both alike. measurement.seconds is the median of
// the plain runs.
PlanMeasurement MeasurePlan(NetworkRun& run, double seconds);

// A duel of the two, for about `seconds`: contestant 0 is `a`, 1 is `b`.
DuelRounds ComparePlans(NetworkRun& a, NetworkRun& b, double seconds);

}  // namespace tilesmith
