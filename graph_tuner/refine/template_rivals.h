// Rivals of a solution that do without one of its templates.
//
// The log knows what a template's kernel costs by itself, where its weights have the caches to themselves.
// What it costs in the network, beside what another template would cost there, is known once both have run
// (prediction_loop.h). Source: original.
#pragma once

#include <vector>

#include "graph_tuner/problem/graph_tune.h"
#include "graph_tuner/refine/prediction_loop.h"

namespace tilesmith {

// For every template that the solution uses, by name: the best plan without it, by the log's costs, wherever
// there is a record of another one. Those that are the solution itself, or alike, are left out. Errors are
// GraphTune's.
std::vector<RivalPlan> TemplateRivals(const NetworkProblem& problem, const Plan& solution,
                                      std::optional<int64_t> max_weight_bytes = {});

}  // namespace tilesmith
