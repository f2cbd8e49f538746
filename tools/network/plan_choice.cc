#include "tools/network/plan_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/error.h"

namespace tilesmith {
namespace {

// "x=1x3x224x224", as --input-shape takes them.
std::string InputSizes(const Graph& graph) {
  std::vector<std::string> sizes;
  for (const Graph::NodeId id : graph.GraphInputs())
    sizes.push_back(fmt::format("{}={}", graph.node(id).name, ShapeToString(graph.node(id).shape)));
  return fmt::format("{}", fmt::join(sizes, " "));
}

// What a plan predicts is of its own threads.
void ForgetPredictions(Plan& plan) {
  plan.predicted_seconds = 0;
  plan.at_distances.clear();
  for (NodePlan& node : plan.nodes) node.predicted_seconds = node.crossing_seconds = 0;
  for (TransformPlan& transform : plan.transforms)
    transform.predicted_seconds = transform.crossing_seconds = 0;
}

}  // namespace

void DeclarePlan(Args& args, std::string* path) {
  args.Text("--plan", path, "From optimize or graph-tune (default: a decent schedule without tuning)",
            "PLAN");
}

void TakeQuantization(const std::string& path, ModelOptions* model) {
  if (!path.empty() && !model->quantization) model->quantization = ReadPlanHeader(path).quantization;
}

int64_t ThreadsFor(const std::string& path, int64_t asked) {
  const bool fewer = asked > DetectCpu().cores && !path.empty() && asked <= ReadPlanHeader(path).threads;
  return fewer ? 0 : asked;
}

bool AskReproducible(const std::string& path) {
  return !path.empty() && ReadPlanHeader(path).target.reproducible;
}

std::optional<std::string> NoteOfThreads(const std::string& path, const Plan& plan, int threads) {
  if (plan.threads == threads) return std::nullopt;
  return fmt::format("{}: made for {} thread{}, and {} run{} it: other schedules may be faster", path,
                     plan.threads, plan.threads == 1 ? "" : "s", threads, threads == 1 ? "s" : "");
}

namespace {

// None of the plans is for this size.
Plan PlanForOtherSize(const std::string& path, std::span<const Plan> plans, const Graph& graph,
                      const DevicePtr& machine, std::vector<std::string>* notes) {
  const Target& cpu = machine->target();
  const Plan* nearest = NearestPlan(plans, graph, cpu, machine->threads());
  std::optional<Plan> plan = nearest ? PlanOfOtherSize(*nearest, graph, cpu) : std::nullopt;
  if (notes != nullptr) {
    notes->push_back(fmt::format("{}: no plan in it is for inputs of {}: {} run", path, InputSizes(graph),
                                 plan ? "the schedules of the nearest size" : "default schedules"));
    if (const auto note = plan ? NoteOfThreads(path, *plan, machine->threads()) : std::nullopt)
      notes->push_back(*note);
  }
  return plan ? *std::move(plan) : HeuristicPlan(graph, cpu, machine->threads());
}

}  // namespace

Plan LoadPlan(const std::string& path, const Graph& graph, const DevicePtr& machine,
              const PlanLoading& loading) {
  return ChoosePlan(path, path.empty() ? std::vector<Plan>() : ReadPlans(path, loading.notes), graph, machine,
                    loading);
}

Plan ChoosePlan(const std::string& path, std::span<const Plan> plans, const Graph& graph,
                const DevicePtr& machine, const PlanLoading& loading) {
  if (plans.empty()) return HeuristicPlan(graph, machine->target(), machine->threads());
  const Plan* fitting = PlanFor(plans, GraphHash(graph), machine->threads());
  if (fitting == nullptr && !loading.force && (plans.size() > 1 || loading.other_sizes) &&
      std::ranges::find(plans, graph.name(), &Plan::network) != plans.end())
    return PlanForOtherSize(path, plans, graph, machine, loading.notes);
  Plan plan = fitting == nullptr ? plans.front() : *fitting;
  try {
    CheckPlan(plan, graph, machine->target(), loading.strict ? machine->threads() : plan.threads,
              loading.force);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
  if (const auto note = NoteOfThreads(path, plan, machine->threads())) {
    ForgetPredictions(plan);
    if (loading.notes != nullptr && !loading.force) loading.notes->push_back(*note);
  }
  return plan;
}

}  // namespace tilesmith
