// All that the page shows, as one JSON object (README.md).
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"
#include "tools/cli/progress.h"
#include "tools/report/saved_results.h"
#include "tuner/records/record.h"

namespace tilesmith {

// How the tuning went, task by task: the best time so far by trial.
//
// A list with an entry for each task of the log that is of the plan's machine and thread count, those that
// take the network longest first: how often the plan runs it, trials, failures by status, and the trials at
// which the best so far got better, with its seconds. Trials are counted in the log's order, re-timings are
// none.
nlohmann::ordered_json TuningCurves(std::span<const Record> records, const Plan& plan);

// A network and its plan as data to draw: nodes, the tensors between them, transforms.
//
// {"nodes": [...], "edges": [...], "transforms": [...]}, the data's members of these names (README.md).
// Without a graph there are the plan's nodes and transforms only. `steps` are rows of a profile, which say
// what was measured. Throws Error as ResolveSchedules does for a plan that is not one for the graph.
nlohmann::ordered_json NetworkView(const Plan& plan, const Graph* graph,
                                   const std::vector<nlohmann::ordered_json>& steps);

// Why each node of a plan is computed as it is: what `tilesmith explain` says of it, for all of them.
struct ReportedPlan {
  const Graph& graph;
  const Plan& plan;
  const std::vector<Record>& records;
  std::string costs_path;  // "": costs are not kept
};

struct NodeExplanations {
  // By node, those that take the plan longest first, as far as the time went: what the best plan has, what
  // comes next, how far off that is and the inequality behind it.
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string missing;  // why there are none, or not of all nodes; "" when there are
};

// Takes about `seconds`. Only on the machine that the plan is for: costs that are not known are measured.
// Throws Error(kInterrupted) when it is stopped.
NodeExplanations ExplainNodes(const ReportedPlan& explained, double seconds, const WorkSinks& sinks);

constexpr int kReportFormat = 1;

struct ReportSources {
  const Plan& plan;
  const std::vector<Record>& records;  // the tuning log's
  const Graph* graph = nullptr;        // null: not known, graph_missing says why
  std::string graph_missing = {};
  const SavedResults& results;
  NodeExplanations explanations = {};
  nlohmann::json trace = {};  // in the Trace Event Format; null: none
};

// Throws as NetworkView does.
nlohmann::ordered_json ReportData(const ReportSources& sources);

// The data's member "verdict" in a sentence: "squeezenet1_1 takes 0.96 ms, oneDNN 1.52 ms: ...".
std::string VerdictText(const nlohmann::ordered_json& data);

}  // namespace tilesmith
