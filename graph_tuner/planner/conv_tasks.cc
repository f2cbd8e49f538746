#include "graph_tuner/planner/conv_tasks.h"

#include <map>

#include "ops/dense/tasks.h"
#include "templates/base/conv_template.h"

namespace tilesmith {
namespace {

std::vector<ConvTask> DistinctTasks(const std::vector<ConvWorkload>& workloads) {
  std::vector<ConvTask> tasks;
  std::map<std::string, size_t> by_workload;
  for (const ConvWorkload& workload : workloads) {
    const auto [found, added] = by_workload.try_emplace(WorkloadToString(workload), tasks.size());
    if (added) tasks.push_back({"", workload, 0});
    ++tasks[found->second].count;
  }
  return tasks;
}

}  // namespace

std::vector<ConvTask> TasksOf(const Graph& graph) { return TasksOf(std::span(&graph, 1)); }

std::vector<ConvTask> TasksOf(std::span<const Graph> graphs) {
  std::vector<ConvWorkload> workloads;
  for (const Graph& graph : graphs) {
    for (Graph::NodeId id = 0; id < graph.size(); ++id) {
      if (std::optional<ConvWorkload> task = TaskOf(graph, id)) workloads.push_back(*std::move(task));
    }
  }
  return DistinctTasks(workloads);
}

std::vector<ConvTask> TasksOf(const Plan& plan) {
  std::vector<ConvWorkload> workloads;
  for (const NodePlan& node : plan.nodes) {
    if (node.record) workloads.push_back(node.record->workload);
  }
  return DistinctTasks(workloads);
}

std::vector<ConvTask> FusedTasksOf(std::span<const Graph> graphs, const Target& cpu) {
  std::vector<ConvWorkload> workloads;
  for (const Graph& graph : graphs) {
    for (const FusablePair& pair : FusablePairs(graph)) {
      if (!SupportingTemplates(pair.workload, cpu).empty()) workloads.push_back(pair.workload);
    }
  }
  return DistinctTasks(workloads);
}

std::vector<std::string> SupportingTemplates(const ConvWorkload& workload, const Target& cpu) {
  std::vector<std::string> names;
  for (const ConvTemplate* candidate : ConvTemplatesFor(cpu, workload)) {
    if (candidate->Supports(workload, cpu).ok) names.emplace_back(candidate->Name());
  }
  return names;
}

bool ColdWeights(ColdOrWarm asked, std::span<const ConvTask> tasks, bool is_network, const Target& cpu) {
  if (asked || !is_network) return asked.value_or(false);
  int64_t bytes = 0;
  for (const ConvTask& task : tasks) {
    if (task.workload.product) continue;
    const DataType type = task.workload.bytes ? DataType::kI8 : DataType::kF32;
    bytes += task.count * ElementCount(task.workload.weights_shape()) * ElementBytes(type);
  }
  return bytes > cpu.l3_bytes / 2;
}

}  // namespace tilesmith
