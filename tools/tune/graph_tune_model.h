// Choosing schedules and layouts of a whole network from a tuning log, and running what was chosen: what
// `tilesmith graph-tune` and the APIs do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/problem/graph_tune.h"
#include "graph_tuner/refine/prediction_differences.h"
#include "graph_tuner/refine/prediction_loop.h"
#include "tools/cli/graph_tuning.h"
#include "tools/network/baseline_runs.h"

namespace tilesmith {

struct GraphTuneModelRequest {
  GraphTuningArguments arguments;  // model, machine, log, and how to choose
  std::string plan_path;           // written as soon as there is a plan worth having
  int64_t rounds = 3;              // plans to run at most, learning from each
  double seconds = 1;              // for each plan and each baseline that is run
  std::optional<int64_t> max_weight_bytes = {};
  bool baselines = true;
  bool variants = false;  // the log's next fastest configs are tried in the network, too
};

struct GraphTunedModel {
  Graph graph;
  Machine machine;
  RefinedPlan refined;
  GraphTuneResult solved;    // the last solution, for its size
  double solve_seconds = 0;  // that it took
  int64_t candidates = 0;    // records that could be chosen
  std::vector<StepDifference> steps;
  std::vector<PlannedBaseline> baselines;
  std::vector<BaselineRun> baseline_runs;  // beside the plan
};

// Nothing else may run in the process meanwhile. Throws Error(kUsage) when there is nothing to choose from,
// Error(kEnvironment) when the plan cannot be written, and Error(kInterrupted) when it is stopped: the
// fastest of the plans that had run is then in the file, if one had.
GraphTunedModel GraphTuneModel(const GraphTuneModelRequest& request, const WorkSinks& sinks);

}  // namespace tilesmith
