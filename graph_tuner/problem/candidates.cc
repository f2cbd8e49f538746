#include "graph_tuner/problem/candidates.h"

#include <algorithm>
#include <set>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/plan.h"
#include "ops/dense/tasks.h"
#include "tuner/records/record_groups.h"
#include "tuner/records/still_builds.h"

namespace tilesmith {
namespace {

LayoutPair CanonicalLayouts(const Record& record) {
  return {CanonicalLayout(record.workload.input_shape(), record.layouts.in),
          CanonicalLayout(record.workload.output_shape(), record.layouts.out)};
}

std::vector<Record> BestOfEach(const std::vector<const Record*>& ranked, const Target& cpu) {
  const auto kind = [](const Record& record) {
    return std::pair(CanonicalLayouts(record), record.template_name);
  };
  std::set<std::pair<LayoutPair, std::string>> taken;
  std::vector<Record> best;
  for (const Record* record : ranked) {
    if (taken.count(kind(*record)) || !StillBuilds(*record, cpu)) continue;
    taken.insert(kind(*record));
    best.push_back(*record);
  }
  std::sort(best.begin(), best.end(), [&](const Record& a, const Record& b) { return kind(a) < kind(b); });
  return best;
}

void Rank(std::vector<const Record*>& records) {
  auto cold = [](const Record* record) { return record->conditions.cold_weights; };
  if (std::any_of(records.begin(), records.end(), cold))
    std::erase_if(records, [&](const Record* record) { return !cold(record); });
  std::stable_sort(records.begin(), records.end(),
                   [](const Record* a, const Record* b) { return IsBetterRecord(*a, *b); });
}

}  // namespace

bool StillBuilds(const Record& record, const Target& cpu) { return WhyNotBuilt(record, cpu).empty(); }

RankedRecords RankRecords(const Graph& graph, const std::vector<Record>& records, const Target& cpu,
                          int threads) {
  RankedRecords ranked;
  for (Graph::NodeId id = 0; id < graph.size(); ++id)
    if (const std::optional<ConvWorkload> task = TaskOf(graph, id)) ranked[WorkloadToString(*task)];
  for (const FusablePair& pair : FusablePairs(graph)) ranked[WorkloadToString(pair.workload)];
  for (const Record* record : StandingRecords(records)) {
    if (record->conditions.threads != threads || !SameMachine(record->target, cpu)) continue;
    const auto group = ranked.find(WorkloadToString(record->workload));
    if (group != ranked.end()) group->second.push_back(record);
  }
  for (auto& [workload, group] : ranked) Rank(group);
  return ranked;
}

Candidates FindCandidates(const Graph& graph, const std::vector<Record>& records, const Target& cpu,
                          int threads) {
  Candidates candidates;
  for (const auto& [workload, ranked] : RankRecords(graph, records, cpu, threads))
    candidates[workload] = BestOfEach(ranked, cpu);
  const auto forget_empty = [&](const ConvWorkload& workload) {
    const auto found = candidates.find(WorkloadToString(workload));
    if (found != candidates.end() && found->second.empty()) candidates.erase(found);
  };
  for (const FusablePair& pair : FusablePairs(graph)) forget_empty(pair.workload);
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const std::optional<ConvWorkload> task = TaskOf(graph, id);
    if (task && !NeedsRecord(*task)) forget_empty(*task);
  }
  return candidates;
}

}  // namespace tilesmith
