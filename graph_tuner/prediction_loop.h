// The prediction loop: solve, run the plan, compare, correct the costs from what was seen, solve again.
//
// A plan is optimal for the costs it was solved with; whether these hold where the kernels really run is only
// known after running it. Every round teaches what its plan's steps cost in context (corrections.h), and the
// next solution is optimal for the costs as then known. When it is a plan that has run already, and what that
// took agrees with the prediction, there is nothing more to learn.
//
// Rivals are run as well, plans that others would choose: they show what nodes cost in layouts that no
// solution has tried, and what is returned is never slower than one of them. Source: original.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph_tuner/corrections.h"
#include "graph_tuner/costs.h"
#include "graph_tuner/plan.h"
#include "graph_tuner/plan_measurement.h"
#include "ops/graph.h"

namespace tilesmith {

struct RivalPlan {
  std::string name;
  Plan plan;
};

struct PredictionLoop {
  int rounds = 3;           // solutions are run at most this often, not counting the check at the end
  double tolerance = 0.05;  // of |measured / predicted - 1|
  // The best plan for these corrections, with its predicted seconds.
  std::function<Plan(const Corrections&)> solve;
  // Runs the plan on an otherwise idle machine.
  std::function<PlanMeasurement(const Plan&)> measure;
  // Whether the first plan is the faster one beyond doubt, the two measured side by side: the machine's speed
  // drifts, so figures of different rounds decide nothing.
  std::function<bool(const Plan&, const Plan&)> is_faster;
  // Asked for once the first solution has run; may be empty.
  std::function<std::vector<RivalPlan>()> rivals = {};
};

// One run of the loop.
struct LoopRound {
  std::string name;              // "solution 1", or the rival's
  double predicted_seconds = 0;  // before the run
  double measured_seconds = 0;
  std::vector<std::string>
      changed;  // nodes scheduled otherwise than in the solution before; in the first: none
};

struct RefinedPlan {
  Plan plan;                // the fastest of those that ran; predicted is what its steps took in its round
  size_t round = 0;         // in which it ran last, from 0; meaningless without rounds
  bool settled = false;     // the last solution had run already, as predicted
  PlanMeasurement check;    // of the plan, taken after its prediction was made
  Corrections corrections;  // all that was learned
  std::vector<LoopRound> rounds;  // rivals too
};

// With 0 rounds nothing is learned: the first solution with its uncorrected prediction, and the check. The
// callbacks' exceptions go through.
RefinedPlan RefinePlan(const Graph& graph, CostSource& costs, const PredictionLoop& loop);

// Whether two plans for one graph schedule a node alike: layouts, template, config, and what is fused.
bool SameSchedule(const NodePlan& a, const NodePlan& b);
bool SameSchedules(const Plan& a, const Plan& b);

}  // namespace tilesmith
