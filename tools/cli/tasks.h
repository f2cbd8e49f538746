// The convolutions and products a command is about: those of a network, one workload, or suites.
#pragma once

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
// What tables say is fused: "two convs", "input ops", or nothing.
std::string FusionText(const ConvWorkload& workload);
// "64x56x56 -> 64x56x56, 3x3 /2", and what else is unusual; "12 products of 197x64 and 64x197t", t for
// transposed.
std::string ShapeText(const ConvWorkload& workload);
// Whether the text, or what follows its last ">", begins with a field and its number, and is no path:
// "v2.jsonl".
bool LooksLikeWorkload(const std::string& text);
// The templates that support the workload, best first: "direct, portable".
std::vector<std::string> SupportingTemplates(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith
