// The tables that tunings end with.
#pragma once

#include <span>

#include "graph_tuner/planner/plan_network.h"
#include "graph_tuner/planner/tuning_tasks.h"
#include "tools/cli/model.h"
#include "tools/cli/report.h"

namespace tilesmith {

void AddTuningTable(Report& report, std::span<const TuneRow> rows);
// The network's time beside oneDNN's; nothing where either is not known.
void AddNetworkTotal(Report& report, std::span<const TuneRow> rows, double network_seconds);

// The sizes that the inputs are given, if any: "input_shapes".
void AddShapes(Report& report, const ModelOptions& model);
// The fact "output_error".
void AddOutputError(Report& report, double error, bool random_inputs);
Cell ErrorCell(double error);

Table TypesTable(std::span<const TypeRun> runs, bool random_inputs);

}  // namespace tilesmith
