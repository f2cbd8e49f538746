// Per-step profiles of a network: as a table, by kind of step and by region, and as a Chrome trace.
#pragma once

#include <span>
#include <string>

#include "graph_tuner/executor/compiled_network.h"
#include "tools/cli/report.h"

namespace tilesmith {

// Every step, in order of execution, with what it loses to memory and the other cores' caches (RepeatSteps),
// where it was repeated and predicted.
// JSON says of which node of the plan it is, and whether it converts that node's output. Where there are
// regions, of which one a step is and the rows that threads compute there: "56+8" are 8 of them twice.
Table ProfileTable(std::span<const StepProfile> steps);
// Total time and share by kind, largest first.
Table KindTable(std::span<const StepProfile> steps);
// Every region (executor/regions.h), what its threads keep of tensors and compute twice.
Table RegionTable(std::span<const RegionProfile> regions);
// What a run's median is made of: the steps, the barriers between them (one behind each, and behind each
// region, by what one takes with nothing to wait for), and what neither accounts for: threads that wait for
// the slowest one, runs that were disturbed. Negative where the steps, low quantiles with a clock around
// each, take longer than a run.
Table TotalsTable(std::span<const StepProfile> steps, double run_seconds, double barrier_seconds);
// Trace Event Format, for chrome://tracing or Perfetto: the steps one after the other, those of a region
// within an event of it.
std::string ChromeTrace(std::span<const StepProfile> steps);
// Seconds of the steps that are no convolutions.
double NonConvSeconds(std::span<const StepProfile> steps);

}  // namespace tilesmith
