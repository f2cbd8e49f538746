#include "graph_tuner/planner/log_plan.h"

#include <algorithm>
#include <optional>

#include "graph_tuner/executor/heuristic_plan.h"

namespace tilesmith {

FastestRecords FastestOf(const BestByWorkload& best) {
  FastestRecords fastest;
  for (const auto& [workload, by_layouts] : best) {
    const auto first =
        std::ranges::min_element(by_layouts, {}, [](const auto& entry) { return entry.second.seconds; });
    fastest.emplace(workload, first->second);
  }
  return fastest;
}

Plan PlanOfFastest(const Graph& graph, const DevicePtr& machine, const FastestRecords& fastest) {
  bool any = false;
  const auto record_of = [&](const ConvWorkload& workload) -> std::optional<Record> {
    const auto found = fastest.find(WorkloadToString(workload));
    any = any || found != fastest.end();
    if (found != fastest.end()) return found->second;
    if (!NeedsRecord(workload)) return std::nullopt;
    return DefaultRecord(workload, machine->target(), machine->threads());
  };
  Plan plan = PlanOfRecords(graph, machine->target(), machine->threads(), record_of);
  if (!any) return HeuristicPlan(graph, machine->target(), machine->threads());
  plan.solver = "fastest of the log";
  return plan;
}

}  // namespace tilesmith
