// What `tilesmith explain` prints: an explanation as facts and tables.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/explain/explain.h"
#include "graph_tuner/planner/explain_plan.h"
#include "tools/cli/graph_tuning.h"
#include "tools/cli/report.h"

namespace tilesmith {

// The totals, then what was asked for: a node, a layout, both, or all nodes in a line each. At most
// `most_terms` terms and changes are listed in a row or table, the rest is added up. The arguments are those
// that it was explained with: a command that would try a layout has them.
void AddExplanation(Report& report, const ExplainedPlan& explained, const GraphTuningArguments& arguments,
                    const std::optional<Layout>& layout,
                    size_t most_terms = std::numeric_limits<size_t>::max());

void AddTypedNodes(Report& report, const std::vector<TypedNode>& nodes);

// "NCHW16c -> NCHW64c", one layout when both are the same, "-" for none.
std::string FormText(const std::optional<LayoutPair>& layouts);

// " by rows", or nothing for even shares.
std::string SplitText(Split split);

// What a node is computed with: "with bn1" in front of it, "in conv2" behind it, or nothing.
std::string FusedText(const Graph& graph, const NodePlan& schedule);

// The layouts of its kernel, how the tasks are dealt to threads, and what it is computed with.
std::string ChoiceText(const Graph& graph, const ExplainedChoice& choice);
std::string ChoiceText(const Graph& graph, const Plan& plan, const NodePlan& schedule);

// Why `best` and not `other`: "NCHW16c: 0.4120 + 0.0310 (x NCHW64c -> NCHW16c) + 0.0100 (conv2 slower in
// NCHW16c) = 0.4530 > NCHW64c: 0.3980 ms". Either sum is the node's own cost and what the plan with that
// choice pays more elsewhere than the other does, its own crossing between threads among it; their difference
// is that of the totals.
std::string InequalityText(const Graph& graph, const ExplainedChoice& best, const ExplainedChoice& other);

// "+0.0310", or "0" for what four decimals do not show; the JSON value is in seconds.
Cell MoreCell(double seconds);

// A row for each term; `most` rows, and a note that adds up the others.
void AddTerms(Report& report, const std::string& title, const std::vector<CostTerm>& terms, size_t most);

}  // namespace tilesmith
