// How a plan's predictions fared: by round of the loop, by kind of step, by node.
#pragma once

#include <string>

#include "graph_tuner/planner/plan_runs.h"
#include "graph_tuner/refine/prediction_differences.h"
#include "graph_tuner/refine/prediction_loop.h"
#include "layouts/measure/core_placement.h"
#include "tools/cli/report.h"

namespace tilesmith {

// A row for each plan that was run.
Table RoundsTable(const RefinedPlan& refined);

// The baselines and last the plan, all by these turns. "Gain" is how much longer a baseline takes than the
// plan, with the 95% interval of its median.
Table BaselineTable(const BaselineRuns& baselines, const Plan& plan);

// Stand-alone costs beside what the steps took in the network.
Table DifferencesTable(const std::vector<DifferencePart>& parts);

// Nodes and transforms that take more than 2% of the run, and of a plan with regions their region. Times are
// shares of an unprofiled run (ShareScale, plan_measurement.h).
struct HeavySteps {
  Table table;
  int64_t count = 0;
  int64_t predicted_well = 0;  // measured within 15% of the prediction
};
HeavySteps FindHeavySteps(const std::vector<StepDifference>& steps, const PlanMeasurement& measurement);

// How many regions a plan has, and of how many nodes; nothing of one without.
void AddRegions(Report& report, const Plan& plan, const std::string& prefix = "");

// Of its network and of itself, by which a report knows what was measured.
void AddHashes(Report& details, const std::string& graph_hash, const std::string& plan_hash);
void AddHashes(Report& details, const Plan& plan);

// How the cores were placed ("barriers us", "arithmetic us"), and how when the plan was measured, if that was
// otherwise: "0.10 (predicted at 0.31)". Nothing where `seen` is unknown. `prefix` is of the facts' JSON
// names.
void AddPlacement(Report& report, const std::string& prefix, const CorePlacement& seen,
                  const CorePlacement& predicted_at);

}  // namespace tilesmith
