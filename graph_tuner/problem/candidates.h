// Candidates: of all that a tuning log says about a conv, each template's best record for each pair of
// layouts.
//
// Where the log has no doubt which template is the fastest, a network may have: some need more memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/graph/graph.h"
#include "tuner/records/record.h"

namespace tilesmith {

// WorkloadToString(workload) -> its candidates, in a fixed order, no two of one template with the same
// layouts in memory.
using Candidates = std::map<std::string, std::vector<Record>>;

// For every conv of the graph, and every pair that can be fused (ops/dense/tasks.h) and has records. Only
// successful records count, of the same machine (SameMachine) and thread count, whose template still accepts
// their config in their layouts. Where a workload has records with cold weights, the warm ones are ignored:
// inside a network weights come from memory, and a mixture would favour whatever was measured warm. Of
// several records of one config the last counts, as in BestRecords (tuner/records/record_groups.h).
// Early-stopped records count only where a pair has no other. A workload of a conv without candidates has an
// empty entry.
Candidates FindCandidates(const Graph& graph, const std::vector<Record>& records, const Target& cpu,
                          int threads);

// WorkloadToString(workload) -> its records, best first (IsBetterRecord), from which FindCandidates takes the
// first of each template for each pair of layouts that StillBuilds. They point into `records`.
using RankedRecords = std::map<std::string, std::vector<const Record*>>;
RankedRecords RankRecords(const Graph& graph, const std::vector<Record>& records, const Target& cpu,
                          int threads);

// Whether its template still accepts the config in its layouts: logs outlive changes to templates.
bool StillBuilds(const Record& record, const Target& cpu);

}  // namespace tilesmith
