// A plan beside its baselines: each of them executed, in turns with the plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/refine/baselines.h"
#include "layouts/measure/duel.h"
#include "tools/cli/report.h"
#include "tools/network/plan_runs.h"

namespace tilesmith {

struct BaselineRun {
  PlannedBaseline baseline;
  double seconds = 0;      // 0 when it was not run
  PairedRatio ratio = {};  // its seconds / the plan's
};

struct BaselineRuns {
  std::vector<BaselineRun> runs;
  double plan_seconds = 0;  // of the plan in the same turns; 0 when no baseline was run
};

// A duel of them all and the plan, for about `seconds` each.
BaselineRuns RunBaselines(const PlanRuns& where, const Plan& plan,
                          const std::vector<PlannedBaseline>& baselines, double seconds);

// The fastest of the baselines that are faster than the plan beyond noise: their 95% intervals lie below the
// plan. None if there is no such baseline.
std::optional<Plan> FasterThanThePlan(const std::vector<BaselineRun>& runs);

// The baselines and last the plan, all by these turns. "Gain" is how much longer a baseline takes than the
// plan, with the 95% interval of its median.
Table BaselineTable(const BaselineRuns& baselines, const Plan& plan);

}  // namespace tilesmith
