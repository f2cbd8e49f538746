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

// A duel of them all and the plan, for about `seconds` each.
std::vector<BaselineRun> RunBaselines(const PlanRuns& where, const Plan& plan,
                                      const std::vector<PlannedBaseline>& baselines, double seconds);

// The fastest of the baselines that are faster than the plan beyond noise: their 95% intervals lie below the
// plan. None if there is no such baseline.
std::optional<Plan> FasterThanThePlan(const std::vector<BaselineRun>& runs);

// The baselines and last the plan, which took `plan_seconds`. "Gain" is how much longer a baseline takes than
// the plan, with the 95% interval of its median.
Table BaselineTable(const std::vector<BaselineRun>& runs, const Plan& plan, double plan_seconds);

}  // namespace tilesmith
