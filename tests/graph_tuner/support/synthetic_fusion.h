// Made-up candidates of fused workloads for the graph tuner's tests.
#pragma once

#include <string>
#include <vector>

#include "graph_tuner/problem/candidates.h"
#include "ops/dense/tasks.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {

// Made-up records of fused workloads, some of them worth it; by what the records are of, no template asked.
inline void AddFusedCandidates(const Graph& graph, const std::vector<int64_t>& blocks, uint64_t seed,
                               Candidates& candidates) {
  for (const FusablePair& pair : FusablePairs(graph)) {
    const std::string text = WorkloadToString(pair.workload);
    std::vector<Record>& records = candidates[text];
    if (!records.empty() || HashFraction(text, seed) < 0.2) continue;
    for (int64_t in : blocks) {
      for (int64_t out : blocks) {
        const std::string key = text + std::to_string(in * 1000 + out);
        if (HashFraction(key, seed) < 0.3) continue;
        Record record = SyntheticRecord(pair.workload.main_conv(), in, out, 1);
        record.workload = pair.workload;
        record.template_name = "fused";
        const double elements = static_cast<double>(ElementCount(pair.workload.output_shape()));
        record.seconds = 1e-6 * elements * (0.5 + 2 * HashFraction(key + "s", seed));
        records.push_back(record);
      }
    }
  }
}

}  // namespace tilesmith
