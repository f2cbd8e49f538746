// The convolutions and products that are tuned: those of a network, or of a list.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "layouts/base/target.h"
#include "ops/conv/workload.h"
#include "ops/graph/graph.h"

namespace tilesmith {

struct ConvTask {
  std::string name;  // of a suite's line; else empty
  ConvWorkload workload;
  int64_t count = 1;          // how often the network contains it
  bool cold_weights = false;  // what its suite asks for
  std::vector<std::string> forbidden_templates = {};
};

// Distinct workloads in the order of their first node.
std::vector<ConvTask> TasksOf(const Graph& graph);
// The tasks of several graphs together, sizes of one network say.
std::vector<ConvTask> TasksOf(std::span<const Graph> graphs);
// Likewise of the fused workloads that the network's pairs allow and some template supports: alternatives to
// the tasks above, which compute the same once more.
std::vector<ConvTask> FusedTasksOf(std::span<const Graph> graphs, const Target& cpu);
// What a plan runs, in its order: a pair that it fuses is one task.
std::vector<ConvTask> TasksOf(const Plan& plan);
// The templates that support the workload, best first: "direct, portable".
std::vector<std::string> SupportingTemplates(const ConvWorkload& workload, const Target& cpu);

// Whether weights come from memory or are in the cache when a task is measured; none: it depends.
using ColdOrWarm = std::optional<bool>;
// Where it depends: cold for a network whose weights cannot all stay in the last-level cache (more than half
// of it, activations needing room too): every layer's then come from memory in each run. Otherwise warm.
bool ColdWeights(ColdOrWarm asked, std::span<const ConvTask> tasks, bool is_network, const Target& cpu);
// The same of one task: where it depends, what its suite asks for.
inline bool ColdWeights(ColdOrWarm asked, const ConvTask& task) { return asked.value_or(task.cold_weights); }

}  // namespace tilesmith
