// What explained the differences between stand-alone costs and what a plan took: computed, or left open.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph_tuner/refine/plan_measurement.h"
#include "layouts/base/target.h"

namespace tilesmith {

// Why a step took longer in the network than its stand-alone cost says.
enum class Cause {
  kUnknown,      // nothing here explains it, or there is nothing to explain
  kColdWeights,  // they were warm when the record was measured, but cannot stay in the caches in the network
};
std::string_view CauseName(Cause cause);  // "cold weights"; "" for kUnknown

// "cold weights" is said of a conv when all of this holds:
//   its record was measured with warm weights (Record::conditions) and the step took more than 5 % longer;
//   its packed weights exceed its share of the caches: of half of the L2s of the plan's threads and the L3,
//     activations needing room too, divided among all convs in proportion to their packed weights;
//   they are more bytes than the tensors it reads and writes, so that they can be what matters.
struct StepDifference {
  MatchedStep matched;
  Cause cause = Cause::kUnknown;
};

// Where the seconds of a run went, against what the stand-alone costs say.
struct DifferencePart {
  std::string name;  // "convolutions with cold weights", "other convolutions", "transforms and copies", ...
  int steps = 0;
  double stand_alone_seconds = 0, seconds = 0;
  bool known = true;  // false: for one of its steps the costs have no time
};

// In order of execution. Precondition: the measurement is of this plan for this graph.
std::vector<StepDifference> ExplainSteps(const Graph& graph, const Plan& plan, CostSource& costs,
                                         const PlanMeasurement& measurement, const Target& cpu);

// Sums by kind of step; parts without steps are left out. The last part, "threads and barriers", is what the
// steps' times do not cover: measurement.seconds less their sum (their times being low quantiles, noise is in
// it too; it can be negative). All parts add up to measurement.seconds.
std::vector<DifferencePart> SumDifferences(const std::vector<StepDifference>& steps,
                                           const PlanMeasurement& measurement);

}  // namespace tilesmith
