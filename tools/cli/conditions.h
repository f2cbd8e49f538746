// Options of what is measured and used: warm or cold weights, and how exact schedules are.
#pragma once

#include "graph_tuner/planner/conv_tasks.h"
#include "tools/cli/args.h"
#include "tuner/records/accuracy.h"

namespace tilesmith {

// Declares --conditions {auto,warm,cold}.
void DeclareConditions(Args& args, ColdOrWarm* conditions);
void DeclareAccuracy(Args& args, AccuracyLimits* limits);

}  // namespace tilesmith
