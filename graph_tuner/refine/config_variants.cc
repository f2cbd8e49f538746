#include "graph_tuner/refine/config_variants.h"

#include <algorithm>
#include <map>

#include "graph_tuner/problem/candidates.h"
#include "layouts/base/check.h"
#include "tuner/precision.h"

namespace tilesmith {
namespace {

// In how many knobs they differ; in all of them when their templates do.
size_t Differences(const Record& a, const Record& b) {
  if (a.template_name != b.template_name) return a.config.knobs().size() + b.config.knobs().size();
  size_t differences = 0;
  for (const auto& [knob, value] : a.config.knobs()) differences += b.config.Find(knob) != value;
  return differences;
}

// What a conv may be computed by instead of `own`, the fastest first.
std::vector<const Record*> Alternatives(const Record& own, const std::vector<const Record*>& ranked,
                                        const Target& cpu, const VariantOptions& options) {
  constexpr size_t kMinDifferences = 2;
  std::vector<const Record*> chosen;
  const auto is_new = [&](const Record& record) {
    const auto differs = [&](const Record* other) { return Differences(record, *other) >= kMinDifferences; };
    return differs(&own) && std::ranges::all_of(chosen, differs);
  };
  for (const Record* record : ranked) {
    if (static_cast<int>(chosen.size()) == options.variants) break;
    if (record->layouts != own.layouts || record->conditions != own.conditions) continue;
    if (IsNarrow(*record) != IsNarrow(own)) continue;  // what it does to the outputs stays
    if (record->early_stopped || record->seconds > options.slack * own.seconds) continue;
    if (is_new(*record) && StillBuilds(*record, cpu)) chosen.push_back(record);
  }
  return chosen;
}

}  // namespace

std::vector<Plan> ConfigVariants(const Graph& graph, const Plan& plan, const std::vector<Record>& records,
                                 const Target& cpu, const VariantOptions& options) {
  const RankedRecords ranked = RankRecords(graph, records, cpu, plan.threads);
  std::vector<Plan> variants;
  for (size_t node = 0; node < plan.nodes.size(); ++node) {
    const std::optional<Record>& own = plan.nodes[node].record;
    if (!own || own->seconds == 0) continue;
    const auto found = ranked.find(WorkloadToString(own->workload));
    if (found == ranked.end()) continue;
    const std::vector<const Record*> others = Alternatives(*own, found->second, cpu, options);
    while (variants.size() < others.size()) variants.push_back(plan);
    for (size_t i = 0; i < others.size(); ++i) variants[i].nodes[node].record = *others[i];
  }
  return variants;
}

Plan FastestConfigs(const std::vector<Plan>& plans, const std::vector<PlanMeasurement>& measurements,
                    double gain) {
  TILESMITH_CHECK(!plans.empty() && plans.size() == measurements.size(), "{} plans", plans.size());
  std::vector<std::map<std::string, double>> seconds(plans.size());  // by node
  for (size_t i = 0; i < plans.size(); ++i) {
    const double share = ShareScale(measurements[i]);
    for (const StepProfile& step : measurements[i].steps)
      if (!step.conversion) seconds[i][step.node] = step.seconds * share;
  }
  Plan fastest = plans[0];
  for (size_t node = 0; node < fastest.nodes.size(); ++node) {
    NodePlan& chosen = fastest.nodes[node];
    if (!chosen.record) continue;
    double least = gain * seconds[0].at(chosen.node);
    for (size_t i = 1; i < plans.size(); ++i) {
      const double took = seconds[i].at(chosen.node);
      if (took >= least) continue;
      least = took;
      chosen.record = plans[i].nodes[node].record;
    }
  }
  return fastest;
}

}  // namespace tilesmith
