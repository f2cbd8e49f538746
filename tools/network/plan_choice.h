// Which of a file's plans a network runs with on a machine.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"
#include "templates/device/device.h"
#include "tools/cli/model.h"

namespace tilesmith {

// "--plan", of what runs a network.
void DeclarePlan(Args& args, std::string* path);

// Has LoadModel give the model that the plans at `path` are for: quantised where they were made with
// --precision int8. "": the model as it is. Throws as ReadPlanHeader does.
void TakeQuantization(const std::string& path, ModelOptions* model);

struct PlanLoading {
  bool force = false;        // as CheckPlan's
  bool other_sizes = false;  // one for another size of the inputs is no error
  bool strict = false;       // one for another number of threads is an error
  // Gets a line for each that was skipped, as ReadPlans' does, and one where none is for these sizes, or the
  // one that is was made for other threads.
  std::vector<std::string>* notes = nullptr;
};
// The plan for this graph among those at `path`, for as many threads as the machine has if there is one,
// checked against graph and machine; where they are for other sizes of the inputs (one plan for another size
// is refused, unless `loading` allows it), the schedules of the nearest one (PlanOfOtherSize); without a
// path, and where that has none, the heuristic plan. One for other threads predicts nothing of the machine's.
// Throws Error(kUsage).
Plan LoadPlan(const std::string& path, const Graph& graph, const DevicePtr& machine,
              const PlanLoading& loading = {});
// The same of `plans`, which were read from `path`; of none, the heuristic plan.
Plan ChoosePlan(const std::string& path, std::span<const Plan> plans, const Graph& graph,
                const DevicePtr& machine, const PlanLoading& loading = {});
// The threads to open this machine with, 0 being one for each core: what is asked for, unless these are more
// than there are cores, and the plans at `path` were made for as many.
int64_t ThreadsFor(const std::string& path, int64_t asked);
// Whether the plans at `path` were made to be reproducible, which the machine then has to be; false without a
// path.
bool AskReproducible(const std::string& path);
// "PLAN: made for 2 threads, and 1 runs it: ..."; none where the numbers are the same.
std::optional<std::string> NoteOfThreads(const std::string& path, const Plan& plan, int threads);

}  // namespace tilesmith
