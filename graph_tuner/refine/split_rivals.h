// Rivals of a solution that deal their nodes' work to threads otherwise.
//
// What crosses between threads is priced by bytes (plan/crossings.h), and a network may take it better or
// worse than that. So what does without the price, or goes by it everywhere, is run as well; and the plan
// without tuning, so that no tuned one is slower. Source: original.
#pragma once

#include <vector>

#include "graph_tuner/problem/graph_tune.h"
#include "graph_tuner/refine/prediction_loop.h"

namespace tilesmith {

// For several threads, HeuristicPlan, where it is accurate enough and its packed weights are not too large.
std::optional<Plan> UntunedPlan(const Graph& graph, const GraphTuneOptions& options,
                                std::optional<int64_t> max_weight_bytes = {});

// For several threads: "even shares", the best plan whose nodes' tasks are all dealt so; "untuned"
// (UntunedPlan); and "untuned, with the log's records": in its layouts, by rows where they can. Those that
// are alike, have larger packed weights or are not accurate enough are left out. Errors are GraphTune's.
std::vector<RivalPlan> SplitRivals(const NetworkProblem& problem, CostSource& costs,
                                   std::optional<int64_t> max_weight_bytes = {});

}  // namespace tilesmith
