#include "tools/report/tuning_curves.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tuner/records/record_groups.h"

namespace tilesmith {
namespace {

using Json = nlohmann::ordered_json;

struct Curve {
  double network_seconds = 0;  // of its best, times how often the plan runs it
  Json json;
};

Curve CurveOf(const RecordGroup& group, int64_t count) {
  Json points = Json::array();
  std::map<std::string, int64_t> failures;
  int64_t trials = 0;
  double best = std::numeric_limits<double>::infinity();
  for (const Record* record : group.records) {
    if (record->purpose == kPurposeRetime) continue;
    ++trials;
    if (record->status != TrialStatus::kOk) {
      ++failures[std::string(TrialStatusName(record->status))];
    } else if (record->seconds > 0 && record->seconds < best) {
      best = record->seconds;
      points.push_back({trials, best});
    }
  }
  Json json = {{"workload", WorkloadToString(group.workload)},
               {"flops", group.workload.flops()},
               {"cold_weights", group.conditions.cold_weights},
               {"count", count},
               {"trials", trials},
               {"failures", Json(failures)},
               {"best", std::move(points)}};
  return {best < std::numeric_limits<double>::infinity() ? best * static_cast<double>(count) : 0,
          std::move(json)};
}

}  // namespace

Json TuningCurves(std::span<const Record> records, const Plan& plan) {
  std::map<std::string, int64_t> counts;
  for (const NodePlan& node : plan.nodes)
    if (node.record) ++counts[WorkloadToString(node.record->workload)];
  std::vector<Curve> curves;
  const std::vector<const Record*> pointers = PointersTo(records);
  for (const RecordGroup& group : GroupRecords(pointers)) {
    if (!SameMachine(group.target, plan.target) || group.conditions.threads != plan.threads) continue;
    const auto count = counts.find(WorkloadToString(group.workload));
    curves.push_back(CurveOf(group, count == counts.end() ? 0 : count->second));
  }
  std::ranges::stable_sort(curves, std::greater(), &Curve::network_seconds);
  Json list = Json::array();
  for (Curve& curve : curves) list.push_back(std::move(curve.json));
  return list;
}

}  // namespace tilesmith
