// How the tuning went, task by task: the best time so far by trial.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "graph_tuner/plan/plan.h"
#include "tuner/records/record.h"

namespace tilesmith {

// A list with an entry for each task of the log that is of the plan's machine and thread count, those that
// take the network longest first: how often the plan runs it, trials, failures by status, and the trials at
// which the best so far got better, with its seconds. Trials are counted in the log's order, re-timings are
// none.
nlohmann::ordered_json TuningCurves(std::span<const Record> records, const Plan& plan);

}  // namespace tilesmith
