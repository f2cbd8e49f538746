#include "graph_tuner/refine/template_rivals.h"

#include <algorithm>
#include <set>

namespace tilesmith {

std::vector<RivalPlan> TemplateRivals(const NetworkProblem& problem, const Plan& solution,
                                      std::optional<int64_t> max_weight_bytes) {
  std::set<std::string> used;
  for (const NodePlan& node : solution.nodes)
    if (node.record) used.insert(node.record->template_name);
  std::vector<RivalPlan> rivals;
  for (const std::string& name : used) {
    const NetworkProblem without = problem.Restricted({.without_template = name});
    std::optional<Plan> plan = PlanIfWeightsFit(without, max_weight_bytes);
    const auto same = [&](const RivalPlan& rival) { return SameSchedules(rival.plan, *plan); };
    if (!plan || SameSchedules(solution, *plan) || std::ranges::any_of(rivals, same)) continue;
    rivals.push_back({"without " + name, std::move(*plan)});
  }
  return rivals;
}

}  // namespace tilesmith
