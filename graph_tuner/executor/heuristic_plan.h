// Plans for those who have not tuned, or not for this size.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "graph_tuner/plan/plan.h"
#include "layouts/base/target.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// The schedule without tuning, in one of two styles: each template's default, in one block size (the CPU's
// vector width) everywhere it can; or, for several threads, NHWC everywhere with tasks in the order of rows,
// so that each thread reads the rows that it wrote. The second where it is estimated to take clearly less
// time, moves of tensors and of bytes from core to core included; never by portable kernels, which have no
// estimate.
Plan HeuristicPlan(const Graph& graph, const Target& cpu, int threads);

// The schedule of a task; none only where NeedsRecord says no (graph_tuner/plan/plan.h).
using RecordOfTask = std::function<std::optional<Record>(const ConvWorkload&)>;

// The same with these schedules, dealt evenly; ops behind them take their layouts.
Plan PlanOfRecords(const Graph& graph, const Target& target, int threads, RecordOfTask record_of);

// The schedules of a plan, which is for inputs of another size of the same network: layouts, splits,
// templates and configs as far as they are valid here, and otherwise what comes nearest to them, and regions
// as far as they compile, in as many bands or more. Nothing of it was measured. nullopt where the networks
// have other nodes, or fuse others.
std::optional<Plan> PlanOfOtherSize(const Plan& plan, const Graph& graph, const Target& cpu);

// Of plans for several sizes of a network the one whose convolutions multiply most nearly as much, of equal
// ones that for so many threads; null where none is of this network and for this CPU.
const Plan* NearestPlan(std::span<const Plan> plans, const Graph& graph, const Target& cpu, int threads);

}  // namespace tilesmith
