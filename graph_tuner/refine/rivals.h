// Rivals of a solution that deal their nodes' work to threads otherwise.
//
// What crosses between threads is priced by bytes (plan/crossings.h), and a network may take it better or
// worse than that. So what does without the price, or goes by it everywhere, is run as well; and the plan
// without tuning, so that no tuned one is slower. Source: original.
#pragma once

#include <vector>

#include "graph_tuner/plan/plan.h"
#include "graph_tuner/problem/graph_tune.h"
#include "graph_tuner/refine/plan_measurement.h"
#include "graph_tuner/refine/prediction_loop.h"
#include "layouts/base/target.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// For several threads, HeuristicPlan, where it is accurate enough and its packed weights are not too large.
std::optional<Plan> UntunedPlan(const Graph& graph, const GraphTuneOptions& options,
                                std::optional<int64_t> max_weight_bytes = {});

// For several threads: "even shares", the best plan whose nodes' tasks are all dealt so; "untuned"
// (UntunedPlan); and "untuned, with the log's records": in its layouts, by rows where they can. Those that
// are alike, have larger packed weights or are not accurate enough are left out. Errors are GraphTune's.
std::vector<RivalPlan> SplitRivals(const NetworkProblem& problem, CostSource& costs,
                                   std::optional<int64_t> max_weight_bytes = {});

// Rivals of a solution that do without one of its templates.
//
// The log knows what a template's kernel costs by itself, where its weights have the caches to themselves.
// What it costs in the network, beside what another template would cost there, is known once both have run
// (prediction_loop.h). Source: original.

// For every template that the solution uses, by name: the best plan without it, by the log's costs, wherever
// there is a record of another one. Those that are the solution itself, or alike, are left out. Errors are
// GraphTune's.
std::vector<RivalPlan> TemplateRivals(const NetworkProblem& problem, const Plan& solution,
                                      std::optional<int64_t> max_weight_bytes = {});

// Other configs for the same layouts, tried in the network.
//
// A log says how fast a config is by itself, with its inputs where it left them itself. In a network the
// layer before has just written them, each core its part: whether the parts suit each other, and what else
// the caches hold, decides between configs that are equal by themselves. So the plan is run with the next
// fastest configs of every conv as well, each conv keeps what took least where it is, and the result has to
// prove itself as a whole. Source: original.

struct VariantOptions {
  int variants = 4;
  double slack = 1.15;  // times as long by itself as the plan's own config, at most
};

// At most `variants` plans with the layouts of `plan`. In each every conv has another record of the same
// workload, layouts and conditions, faster ones first, which differs in two knobs or more from those before
// it; a conv that has no further one keeps that of the plan. Records are taken as FindCandidates takes them.
std::vector<Plan> ConfigVariants(const Graph& graph, const Plan& plan, const std::vector<Record>& records,
                                 const Target& cpu, const VariantOptions& options = {});

// The first plan, each conv with the record of the plan in which its step took least, if that is less than
// `gain` times what it took in the first one. Preconditions: plans as from ConfigVariants behind what they
// are variants of, measured together.
Plan FastestConfigs(const std::vector<Plan>& plans, const std::vector<PlanMeasurement>& measurements,
                    double gain = 0.98);

}  // namespace tilesmith
