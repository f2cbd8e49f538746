// Why each node of a plan is computed as it is: what `tilesmith explain` says of it, for all of them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "tools/cli/progress.h"
#include "tuner/records/record.h"

namespace tilesmith {

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

}  // namespace tilesmith
