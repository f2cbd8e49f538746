// All that the page shows, as one JSON object (README.md).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"
#include "tools/report/node_explanations.h"
#include "tools/report/saved_results.h"
#include "tuner/records/record.h"

namespace tilesmith {

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
