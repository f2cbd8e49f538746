// What `tilesmith explain` prints: an explanation as facts and tables.
#pragma once

#include <limits>
#include <optional>

#include "tools/cli/report.h"
#include "tools/network/explain_plan.h"

namespace tilesmith {

// The totals, then what was asked for: a node, a layout, both, or all nodes in a line each. At most
// `most_terms` terms and changes are listed in a row or table, the rest is added up.
void AddExplanation(Report& report, const ExplainedPlan& explained, const std::optional<Layout>& layout,
                    size_t most_terms = std::numeric_limits<size_t>::max());

}  // namespace tilesmith
