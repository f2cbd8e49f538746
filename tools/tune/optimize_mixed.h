// A network's types, each tuned by itself, and then what they found together.
#pragma once

#include <string>

#include "graph_tuner/plan/plan.h"
#include "tools/tune/optimize_model.h"

namespace tilesmith {

// Whether what an earlier run found stays until there is better.
bool GoesOnWithPlan(const OptimizeModelRequest& request);
// A plan file that is gone on with holds nothing of another network: throws Error(kUsage) where it does.
void RequireNetwork(const std::string& path, const std::string& network, const Plan& plan);

// The network in the one type that the request names. `compares`: whether it is to be told what that does to
// the outputs.
OptimizedModel OptimizeInOneType(OptimizeModelRequest request, bool compares, const WorkSinks& sinks,
                                 const ShowOptimizing& on_progress);

// For mixed, as OptimizeModel says. Precondition: the request is complete, and for a CPU.
OptimizedModel OptimizeMixed(const OptimizeModelRequest& request, const WorkSinks& sinks,
                             const ShowOptimizing& on_progress);

}  // namespace tilesmith
