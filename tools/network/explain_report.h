// What `tilesmith explain` prints: explanations as facts and tables.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "graph_tuner/best_plans.h"
#include "graph_tuner/explain.h"
#include "graph_tuner/layout_tries.h"
#include "tools/cli/report.h"

namespace tilesmith {

// A network and, where the user has one, a plan of it that is held against the best.
struct ExplainedNetwork {
  const SolvedNetwork& solved;
  const Plan* given = nullptr;
  size_t most_terms = std::numeric_limits<size_t>::max();  // listed in a table
};

// The network, its best total, and how far off the given plan is.
void AddTotals(Report& report, const ExplainedNetwork& network);

// Every way to compute a node, and why not another one: what the given plan has or, where that is the best,
// the runner-up. `options` are ExplainNode's.
void AddNode(Report& report, const ExplainedNetwork& network, const std::vector<ExplainedChoice>& options);

// A layout that the user asks about: was it tried, and how far off is it.
struct AskedLayout {
  Layout layout;
  LayoutTries tries;    // of convs
  std::string command;  // that would try it
};
void AddLayout(Report& report, const ExplainedNetwork& network, const std::vector<ExplainedChoice>& options,
               const AskedLayout& asked);

// Called with nodes done and in all.
using NodeProgress = std::function<void(size_t, size_t)>;

// A row for each node that has a choice: what the best plan has, what the runner-up is (or what the given
// plan has), and how far off that is.
void AddSummary(Report& report, const ExplainedNetwork& network, const NodeProgress& progress);

// A row for each convolution: was the layout tried, and how far off is the best choice that has it.
// `records` are the log's.
void AddLayoutSummary(Report& report, const ExplainedNetwork& network, const Layout& layout,
                      const std::vector<Record>& records, const NodeProgress& progress);

// A row for each of the best plans: how far off it is, and what it computes in other layouts.
void AddPlans(Report& report, const ExplainedNetwork& network, const std::vector<RankedPlan>& plans);

}  // namespace tilesmith
