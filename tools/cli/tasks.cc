#include "tools/cli/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "ops/dense/tasks.h"
#include "templates/base/conv_template.h"

namespace tilesmith {
namespace {

std::vector<ConvTask> Distinct(const std::vector<ConvWorkload>& workloads) {
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
  return Distinct(workloads);
}

std::vector<ConvTask> TasksOf(const Plan& plan) {
  std::vector<ConvWorkload> workloads;
  for (const NodePlan& node : plan.nodes) {
    if (node.record) workloads.push_back(node.record->workload);
  }
  return Distinct(workloads);
}

std::vector<ConvTask> FusedTasksOf(std::span<const Graph> graphs, const Target& cpu) {
  std::vector<ConvWorkload> workloads;
  for (const Graph& graph : graphs) {
    for (const FusablePair& pair : FusablePairs(graph)) {
      if (!SupportingTemplates(pair.workload, cpu).empty()) workloads.push_back(pair.workload);
    }
  }
  return Distinct(workloads);
}

std::string FusionText(const ConvWorkload& workload) {
  return !workload.before.empty() ? "two convs" : workload.pre.any() ? "input ops" : "";
}

std::string ShapeText(const ConvWorkload& w) {
  if (w.product) {
    const auto [left, right] = *w.product;
    return fmt::format("{} products of {}x{}{} and {}x{}{}", w.mb, w.oh, w.ic, left ? "t" : "", w.ic, w.oc,
                       right ? "t" : "");
  }
  std::string text = fmt::format("{}{}x{}x{} -> {}x{}x{}, {}x{}", w.mb > 1 ? fmt::format("{}x", w.mb) : "",
                                 w.ic, w.ih, w.iw, w.oc, w.oh, w.ow, w.kh, w.kw);
  if (w.sh > 1 || w.sw > 1) text += fmt::format(" /{}", w.sh);
  if (w.dh > 0 || w.dw > 0) text += fmt::format(" d{}", w.dh + 1);
  if (w.g > 1) text += fmt::format(" g{}", w.g);
  if (w.post.sum) text += " +sum";
  if (w.pre.any()) text = "input ops > " + text;
  return w.before.empty() ? text : ShapeText(w.before[0]) + " > " + text;
}

namespace {

// A folder or a suffix of letters, which workloads have in names only.
bool LooksLikePath(const std::string& text) {
  if (text.find('"') != std::string::npos) return false;
  const size_t dot = text.rfind('.');
  const bool has_suffix = dot != std::string::npos && dot + 1 < text.size() &&
                          std::isalpha(static_cast<unsigned char>(text[dot + 1])) != 0;
  return has_suffix || text.find('/') != std::string::npos;
}

}  // namespace

bool LooksLikeWorkload(const std::string& whole) {
  if (LooksLikePath(whole)) return false;
  const size_t arrow = whole.rfind('>');
  const std::string text = arrow == std::string::npos ? whole : whole.substr(arrow + 1);
  const size_t letters = static_cast<size_t>(
      std::find_if(text.begin(), text.end(), [](char c) { return c < 'a' || c > 'z'; }) - text.begin());
  if (letters == 1 && text.starts_with("n\"")) return true;
  return letters >= 1 && letters <= 2 && letters < text.size() && text[letters] >= '0' &&
         text[letters] <= '9';
}

std::vector<std::string> SupportingTemplates(const ConvWorkload& workload, const Target& cpu) {
  std::vector<std::string> names;
  for (const ConvTemplate* candidate : ConvTemplatesFor(cpu, workload)) {
    if (candidate->Supports(workload, cpu).ok) names.emplace_back(candidate->Name());
  }
  return names;
}

}  // namespace tilesmith
