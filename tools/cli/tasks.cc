#include "tools/cli/tasks.h"

#include <algorithm>
#include <map>

#include "ops/nodes/conv.h"
#include "templates/conv_template.h"

namespace tilesmith {

std::vector<ConvTask> TasksOf(const Graph& graph) {
  std::vector<ConvTask> tasks;
  std::map<std::string, size_t> by_workload;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const auto* conv = dynamic_cast<const ConvOp*>(graph.node(id).op.get());
    if (conv == nullptr) continue;
    const auto [found, added] = by_workload.try_emplace(WorkloadToString(conv->workload()), tasks.size());
    if (added) {
      tasks.push_back({"", conv->workload(), 1});
    } else {
      ++tasks[found->second].count;
    }
  }
  return tasks;
}

bool LooksLikeWorkload(const std::string& text) {
  const size_t letters = size_t(
      std::find_if(text.begin(), text.end(), [](char c) { return c < 'a' || c > 'z'; }) - text.begin());
  if (letters == 1 && text.starts_with("n\"")) return true;
  return letters >= 1 && letters <= 2 && letters < text.size() && text[letters] >= '0' &&
         text[letters] <= '9';
}

std::string SupportingTemplates(const ConvWorkload& workload, const CpuInfo& cpu) {
  std::string names;
  for (const ConvTemplate* candidate : ConvTemplates()) {
    if (!candidate->Supports(workload, cpu).ok) continue;
    names += (names.empty() ? "" : ", ") + std::string(candidate->Name());
  }
  return names;
}

}  // namespace tilesmith
