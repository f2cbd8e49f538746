// Per-step profiles of a network: as a table, by kind of step, and as a Chrome trace.
#pragma once

#include <span>
#include <string>

#include "graph_tuner/executor/executor.h"
#include "tools/cli/report.h"

namespace tilesmith {

// Every step, in order of execution, with what it loses to memory and the other cores' caches (RepeatSteps),
// where it was repeated and predicted.
// JSON says of which node of the plan it is, and whether it converts that node's output.
Table ProfileTable(std::span<const StepProfile> steps);
// Total time and share by kind, largest first.
Table KindTable(std::span<const StepProfile> steps);
// What a run's median is made of: the steps, the barriers between them (one behind each, by what one takes
// with nothing to wait for), and what neither accounts for: threads that wait for the slowest one, runs that
// were disturbed. Negative where the steps, low quantiles with a clock around each, take longer than a run.
Table TotalsTable(std::span<const StepProfile> steps, double run_seconds, double barrier_seconds);
// Trace Event Format, for chrome://tracing or Perfetto: the steps one after the other.
std::string ChromeTrace(std::span<const StepProfile> steps);
// Seconds of the steps that are no convolutions.
double NonConvSeconds(std::span<const StepProfile> steps);

}  // namespace tilesmith
