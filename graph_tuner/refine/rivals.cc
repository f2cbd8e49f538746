#include "graph_tuner/refine/rivals.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/crossings.h"
#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/problem/candidates.h"
#include "graph_tuner/problem/error_price.h"
#include "layouts/base/check.h"
#include "ops/dense/tasks.h"
#include "tuner/precision.h"

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

std::vector<RivalPlan> TemplateRivals(const NetworkProblem& problem, const Plan& solution,
                                      std::optional<int64_t> max_weight_bytes) {
  std::set<std::string> used;
  for (const NodePlan& node : solution.nodes)
    if (node.record) used.insert(node.record->template_name);
  std::vector<RivalPlan> rivals;
  for (const std::string& name : used) {
    const NetworkProblem without = problem.Restricted({.without_template = name});
    std::optional<Plan> plan = PlanIfWeightsFit(without, max_weight_bytes);
    const auto same = [&](const RivalPlan& rival) { return SameSchedules(rival.plan, *plan); };
    if (!plan || SameSchedules(solution, *plan) || std::ranges::any_of(rivals, same)) continue;
    rivals.push_back({"without " + name, std::move(*plan)});
  }
  return rivals;
}
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
