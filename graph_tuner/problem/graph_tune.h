// Graph tuning: from a network's problem to its plan.
#pragma once

#include <cstdint>
#include <optional>

#include "graph_tuner/problem/network_problem.h"

namespace tilesmith {

struct GraphTuneResult {
  Plan plan;
  SolveStats stats;
  size_t variables = 0, edges = 0;  // of the layout problem
};

// The fastest plan under these corrections. With a limit, of all convs' packed weights together, the one of
// the lowest price on weights (error_price.h), up to a hundredth, at which the solution keeps to it; a plan
// between this one and the next larger may be missed; the same holds for the problem's budget of errors,
// whose certificate says how far from the fastest the plan can be. Deterministic. Throws Error(kNoCandidate)
// when the solver refuses, or when even the smallest weights that the log has schedules for, or the smallest
// error, are larger.
GraphTuneResult GraphTune(const NetworkProblem& problem, const Corrections& corrections = {},
                          std::optional<int64_t> max_weight_bytes = {});

// GraphTune's plan, by the log's costs; none where a limit leaves none. For plans that nobody depends on.
std::optional<Plan> PlanIfWeightsFit(const NetworkProblem& problem, std::optional<int64_t> max_weight_bytes);

}  // namespace tilesmith
