#include "tools/bench/log_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/plan.h"
#include "layouts/base/error.h"

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

Schedule ScheduleIn(const Record& record, bool planned) {
  return {record.template_name, record.config, planned ? "plan" : record.seconds > 0 ? "log" : "default"};
}

namespace {

Schedule ScheduleOf(const Record& record) { return {record.template_name, record.config, "log"}; }

const BestByLayouts& RecordsOf(const ConvWorkload& workload, const BestByWorkload& records) {
  static const BestByLayouts none;
  const auto found = records.find(WorkloadToString(workload));
  return found == records.end() ? none : found->second;
}

}  // namespace

SeparateSchedules FastestSeparate(const ConvWorkload& workload, const BestByWorkload& records,
                                  const Target& cpu) {
  const ConvWorkload main = workload.main_conv();
  SeparateSchedules best{{}, DefaultSchedule(main, cpu)};
  if (!workload.before.empty()) best.first = DefaultSchedule(workload.before[0], cpu);
  double seconds = std::numeric_limits<double>::infinity();
  const auto offer = [&](const Record* first, const Record& second) {
    const double sum = second.seconds + (first ? first->seconds : 0);
    if (sum >= seconds) return;
    seconds = sum;
    best = {first ? ScheduleOf(*first) : Schedule(), ScheduleOf(second)};
  };
  for (const auto& [layouts, second] : RecordsOf(main, records)) {
    if (workload.before.empty()) offer(nullptr, second);
    for (const ConvWorkload& before : workload.before) {
      for (const auto& [first_layouts, first] : RecordsOf(before, records))
        if (first_layouts.out == layouts.in) offer(&first, second);
    }
  }
  return best;
}

Schedule DefaultSchedule(const ConvWorkload& workload, const Target& cpu, DataType type) {
  for (const ConvTemplate* candidate : ConvTemplatesFor(cpu, workload, type)) {
    if (!candidate->Supports(workload, cpu).ok) continue;
    return {std::string(candidate->Name()), candidate->Default(workload, cpu), "default"};
  }
  throw Error(ErrorCode::kNoCandidate,
              fmt::format("no template of {} supports {}", DataTypeName(type), WorkloadToString(workload)));
}

}  // namespace tilesmith
