// Options of what is measured and used: warm or cold weights, and how exact schedules are.
#pragma once

#include <string>
#include <vector>

#include "layouts/base/target.h"
#include "tools/cli/args.h"
#include "tools/cli/tasks.h"
#include "tuner/records/accuracy.h"

namespace tilesmith {

// Declares --conditions {auto,warm,cold}; *conditions must hold "auto" beforehand.
void DeclareConditions(Args& args, std::string* conditions);

// "auto" is cold for a network whose weights cannot all stay in the last-level cache (more than half of it,
// activations needing room too): every layer's then come from memory in each run. Otherwise it is warm.
bool ColdWeights(const std::string& conditions, const std::vector<ConvTask>& tasks, bool is_network,
                 const Target& cpu);

// Whether a task's weights are cold: what the suite asks for counts when nothing else was said.
bool ColdWeights(const std::string& conditions, const ConvTask& task);

void DeclareAccuracy(Args& args, AccuracyLimits* limits);

}  // namespace tilesmith
