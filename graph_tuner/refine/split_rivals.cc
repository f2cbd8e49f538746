#include "graph_tuner/refine/split_rivals.h"

#include <algorithm>
#include <utility>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/crossings.h"
#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/problem/weight_price.h"
#include "ops/dense/product_task.h"

namespace tilesmith {
namespace {

Plan MadeWithoutTuning(const Graph& graph, const GraphTuneOptions& options) {
  Plan plan = HeuristicPlan(graph, options.cpu, options.threads);
  plan.ends = options.ends;
  plan.accuracy = options.accuracy;
  plan.certificate = "none: the plan without tuning";
  return plan;
}

// Every conv has the log's fastest record for its layouts, where there is one, and its tasks are dealt by
// rows where that record's can be.
Plan WithRecords(const NetworkProblem& problem, CostSource& costs, Plan plan) {
  const GraphTuneOptions& options = problem.options();
  Crossings crossings(problem.graph(), costs, options.cpu, options.threads);
  for (NodePlan& node : plan.nodes) {
    const Graph& graph = problem.graph();
    const std::optional<ConvWorkload> task =
        node.record ? node.record->workload : TaskOf(graph, *graph.Find(node.node));
    if (!task) continue;
    const auto found = problem.candidates().find(WorkloadToString(*task));
    if (found == problem.candidates().end()) continue;
    const Record* fastest = nullptr;
    for (const Record& record : found->second) {
      const bool alike = SameForm(record.workload.input_shape(), record.layouts.in, node.layouts.in) &&
                         SameForm(record.workload.output_shape(), record.layouts.out, node.layouts.out);
      if (alike && record.seconds > 0 && (!fastest || record.seconds < fastest->seconds)) fastest = &record;
    }
    if (!fastest) continue;
    plan.certificate = "none: the log's records in the layouts without tuning";
    node.record = *fastest;
    node.layouts = fastest->layouts;
    const std::vector<Deal> deals = crossings.DealsOf(*fastest);
    const bool by_rows =
        std::ranges::any_of(deals, [](const Deal& deal) { return deal.ownership.split == Split::kRows; });
    node.split = by_rows ? Split::kRows : Split::kEven;
  }
  return plan;
}

bool IsAllowed(const GraphTuneOptions& options, const Plan& plan, std::optional<int64_t> max_weight_bytes) {
  const bool accurate = std::ranges::all_of(plan.nodes, [&](const NodePlan& node) {
    return !node.record || Accepts(options.accuracy, *node.record);
  });
  return accurate && options.errors.Of(plan) <= options.errors.most &&
         (!max_weight_bytes ||
          PackedWeightBytes(plan, options.cpu) <= static_cast<double>(*max_weight_bytes));
}

}  // namespace

std::optional<Plan> UntunedPlan(const Graph& graph, const GraphTuneOptions& options,
                                std::optional<int64_t> max_weight_bytes) {
  if (options.threads == 1) return std::nullopt;
  Plan plan = MadeWithoutTuning(graph, options);
  return IsAllowed(options, plan, max_weight_bytes) ? std::optional(std::move(plan)) : std::nullopt;
}

std::vector<RivalPlan> SplitRivals(const NetworkProblem& problem, CostSource& costs,
                                   std::optional<int64_t> max_weight_bytes) {
  std::vector<RivalPlan> rivals;
  if (problem.options().threads == 1) return rivals;
  const auto add = [&](const char* name, Plan plan) {
    const auto same = [&](const RivalPlan& rival) { return SameSchedules(rival.plan, plan); };
    if (std::ranges::any_of(rivals, same) || !IsAllowed(problem.options(), plan, max_weight_bytes)) return;
    PricePlan(problem.graph(), costs, plan);
    rivals.push_back({name, std::move(plan)});
  };
  if (std::optional<Plan> even =
          PlanIfWeightsFit(problem.Restricted({.even_shares = true}), max_weight_bytes))
    add("even shares", *std::move(even));
  const Plan untuned = MadeWithoutTuning(problem.graph(), problem.options());
  add("untuned", untuned);
  add("untuned, with the log's records", WithRecords(problem, costs, untuned));
  return rivals;
}

}  // namespace tilesmith
