#include "graph_tuner/refine/template_rivals.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace tilesmith {
namespace {

// A conv keeps what it cannot do without; layers that can be fused can also run one by one.
std::vector<Record> Without(const std::string& template_name, const std::vector<Record>& records) {
  std::set<std::string> elsewhere;  // workloads that another template has records of
  for (const Record& record : records)
    if (record.template_name != template_name) elsewhere.insert(WorkloadToString(record.workload));
  std::vector<Record> kept;
  std::ranges::copy_if(records, std::back_inserter(kept), [&](const Record& record) {
    const bool needed = !record.workload.fused() && !elsewhere.contains(WorkloadToString(record.workload));
    return needed || record.template_name != template_name;
  });
  return kept;
}

}  // namespace

std::vector<RivalPlan> TemplateRivals(const Graph& graph, const std::vector<Record>& records,
                                      CostSource& costs, const GraphTuneOptions& options,
                                      const Plan& solution) {
  std::set<std::string> used;
  for (const NodePlan& node : solution.nodes)
    if (node.record) used.insert(node.record->template_name);
  std::vector<RivalPlan> rivals;
  for (const std::string& name : used) {
    std::optional<Plan> plan = PlanIfWeightsFit(graph, Without(name, records), costs, options);
    const auto same = [&](const RivalPlan& rival) { return SameSchedules(rival.plan, *plan); };
    if (!plan || SameSchedules(solution, *plan) || std::ranges::any_of(rivals, same)) continue;
    rivals.push_back({"without " + name, std::move(*plan)});
  }
  return rivals;
}

}  // namespace tilesmith
