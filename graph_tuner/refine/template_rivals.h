// Rivals of a solution that do without one of its templates.
//
// The log knows what a template's kernel costs by itself, where its weights have the caches to themselves.
// What it costs in the network, beside what another template would cost there, is known once both have run
// (prediction_loop.h). Source: original.
#pragma once

#include <vector>

#include "graph_tuner/graph_tune.h"
#include "graph_tuner/refine/prediction_loop.h"

namespace tilesmith {

// For every template that the solution uses, by name: the best plan without it, wherever there is a record of
// another one. Those that are the solution itself, or alike, are left out. Arguments and errors are
// GraphTune's; options.corrections should be empty.
std::vector<RivalPlan> TemplateRivals(const Graph& graph, const std::vector<Record>& records,
                                      CostSource& costs, const GraphTuneOptions& options,
                                      const Plan& solution);

}  // namespace tilesmith
