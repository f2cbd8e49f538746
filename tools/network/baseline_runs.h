// A plan beside its baselines: each of them executed, in turns with the plan.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph_tuner/baselines.h"
#include "tools/bench/duel.h"
#include "tools/cli/report.h"
#include "tools/network/network_run.h"

namespace tilesmith {

struct BaselineRun {
  PlannedBaseline baseline;
  double seconds = 0;      // 0 when it was not run
  PairedRatio ratio = {};  // its seconds / the plan's
};

struct BaselineOptions {
  double seconds = 1;                                  // for each baseline and the plan together
  std::function<void(const std::string& name)> begin;  // called before each
};

// One after the other, so that no more than two executors are in memory.
std::vector<BaselineRun> RunBaselines(const Graph& graph, const Plan& plan, const Machine& machine,
                                      const std::vector<PlannedBaseline>& baselines,
                                      const BaselineOptions& options);

// The baselines and last the plan, which took `plan_seconds`. "Gain" is how much longer a baseline takes than
// the plan, with the 95% interval of its median.
Table BaselineTable(const std::vector<BaselineRun>& runs, const Plan& plan, double plan_seconds);

}  // namespace tilesmith
