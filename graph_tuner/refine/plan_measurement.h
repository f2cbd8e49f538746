// What running a plan showed, and which entry of the plan each measured step is.
#pragma once

#include <cstdint>
#include <vector>

#include "graph_tuner/costs/corrections.h"
#include "graph_tuner/costs/costs.h"
#include "graph_tuner/executor/executor.h"
#include "graph_tuner/plan/plan.h"
#include "layouts/measure/core_placement.h"

namespace tilesmith {

struct PlanMeasurement {
  double seconds = 0;              // of one run, without a clock between the steps
  std::vector<StepProfile> steps;  // of profiled runs
  std::vector<double> turns = {};  // `seconds` of each turn, of plans that were run by turns
  CorePlacement placement = {};    // of the cores, meanwhile
  int64_t bytes = 0;               // of packed weights, activations and scratch
  double disturbed_share = 0;      // of the time, in which others had the cores
};

// How many times longer than `other` the plan takes in each turn, so that the machine's speed cancels out.
// Precondition: measured together, by turns.
std::vector<double> RatiosTo(const PlanMeasurement& other, const PlanMeasurement& measurement);

// Sum over the steps.
double ProfiledSeconds(const PlanMeasurement& measurement);

// What turns a step's profiled seconds into its share of an unprofiled run: measurement.seconds /
// ProfiledSeconds. Without it the parts would not add up to the whole: each step's time is a low quantile of
// its own, and a run has a beginning and an end. 1 when nothing was profiled.
double ShareScale(const PlanMeasurement& measurement);

struct MatchedStep {
  StepProfile step;
  const NodePlan* node = nullptr;  // its entry in the plan; null for conversions
  double stand_alone_seconds = 0;  // by its record or the costs, corrections aside; 0 when not planned
  DealtTasks dealt = {};           // by the costs: what crosses is not in stand_alone_seconds
  double predicted_seconds = 0;    // by the plan, which may have been priced anew since it ran
};

// One for each step, in their order; what crosses by the prices of cores placed as they were. Precondition:
// the measurement is of this plan for this graph.
std::vector<MatchedStep> MatchSteps(const Graph& graph, const Plan& plan, CostSource& costs,
                                    const PlanMeasurement& measurement);

// Learns every planned step, each with its share of an unprofiled run; conversions that a plan lists several
// times with their mean.
void Learn(const std::vector<MatchedStep>& steps, double share_scale, Corrections& corrections);

}  // namespace tilesmith
