// Graph tuning: from a tuned log to the plan of a whole network.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/costs/corrections.h"
#include "graph_tuner/costs/costs.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/solvers/solver.h"
#include "ops/graph.h"

namespace tilesmith {

struct GraphTuneOptions {
  CpuInfo cpu;
  int threads = 1;
  std::string solver = "dp";
  SolveLimits limits;
  // A workload the log lacks gets its default schedule, at no predicted cost, and the certificate says so.
  bool allow_defaults = false;
  bool fusion = true;       // fused workloads that the log knows may be chosen
  EndLayouts ends;          // how the caller gives inputs and takes outputs; changing that is charged
  AccuracyLimits accuracy;  // records beyond it are as if they were not in the log
  // A baseline for comparison: every conv reads and writes this layout where it has such a candidate (else it
  // writes it, as a first conv that reads NCHW does; else it is free), other ops run in it or in NCHW.
  std::optional<Layout> uniform;
  // Another baseline, what tuning alone gives: every workload has its fastest record only, whatever its
  // layouts.
  bool fastest_records = false;
  // Of all convs together; a price on them (weight_price.h) finds the fastest plan that keeps to it, or
  // nearly the fastest. The default is no limit.
  std::optional<int64_t> max_weight_bytes;
  Corrections corrections;  // what running earlier plans has taught
  // How the user named the model, for the command that error messages suggest.
  std::string model = "MODEL";
  // Called while costs are asked for, measured ones taking a few milliseconds each.
  std::function<void(size_t done, size_t total)> progress;
};

struct GraphTuneResult {
  Plan plan;
  SolveStats stats;
  size_t variables = 0, edges = 0;  // of the layout problem
};

// `graph` is the network after all passes, `records` a tuning log's. Deterministic. The plan's cost is
// computed a second time from the plan alone (price_plan.h) and must agree; all costs are the corrected ones.
// Throws Error(kNoCandidate) naming every workload without a usable record and the command that fills them,
// when the solver refuses, or when the weights cannot be so small. Error(kUsage): unknown solver.
GraphTuneResult GraphTune(const Graph& graph, const std::vector<Record>& records, CostSource& costs,
                          const GraphTuneOptions& options);

// GraphTune's plan; none where options.max_weight_bytes leaves none. For plans that nobody depends on.
std::optional<Plan> PlanIfWeightsFit(const Graph& graph, const std::vector<Record>& records,
                                     CostSource& costs, const GraphTuneOptions& options);

}  // namespace tilesmith
