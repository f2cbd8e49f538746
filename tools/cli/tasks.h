// The convolutions a command is about: those of a network, one workload, or suites.
#pragma once

#include <string>
#include <vector>

#include "layouts/base/cpu.h"
#include "ops/graph.h"
#include "ops/workload.h"

namespace tilesmith {

struct ConvTask {
  std::string name;  // of a suite's line; else empty
  ConvWorkload workload;
  int64_t count = 1;          // how often the network contains it
  bool cold_weights = false;  // what its suite asks for
};

// Distinct workloads in the order of their first node.
std::vector<ConvTask> TasksOf(const Graph& graph);
// Whether every character could belong to a workload string, beginning with a field and its number.
bool LooksLikeWorkload(const std::string& text);
// The templates that support the workload, best first: "direct, portable".
std::string SupportingTemplates(const ConvWorkload& workload, const CpuInfo& cpu);

}  // namespace tilesmith
