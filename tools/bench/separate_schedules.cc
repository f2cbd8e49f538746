#include "tools/bench/separate_schedules.h"

#include <fmt/format.h>

#include <limits>

#include "layouts/base/error.h"

namespace tilesmith {
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
  std::vector<const ConvTemplate*> candidates = ConvTemplatesFor(cpu, workload);
  if (type == DataType::kBf16) candidates.assign(Bf16ConvTemplates().begin(), Bf16ConvTemplates().end());
  for (const ConvTemplate* candidate : candidates) {
    if (!candidate->Supports(workload, cpu).ok) continue;
    return {std::string(candidate->Name()), candidate->Default(workload, cpu), "default"};
  }
  throw Error(ErrorCode::kNoCandidate,
              fmt::format("no template of {} supports {}", DataTypeName(type), WorkloadToString(workload)));
}

}  // namespace tilesmith
