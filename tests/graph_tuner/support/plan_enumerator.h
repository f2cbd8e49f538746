// The graph tuner's oracle: all plans there are.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "graph_tuner/plan/crossings.h"
#include "graph_tuner/problem/build_problem.h"
#include "graph_tuner/problem/network_problem.h"
#include "ops/conv/conv.h"
#include "ops/dense/tasks.h"

namespace tilesmith {

// Every plan of a small network, without any layout problem: records, layouts and, with crossings, splits
// node by node, and pairs fused or not.
class PlanEnumerator {
 public:
  PlanEnumerator(const Graph& graph, const Candidates& candidates, const EndLayouts& ends = {})
      : graph_(graph), candidates_(candidates), pairs_(FusablePairs(graph)) {
    plan_.ends = ends;
  }
  // Plans of several threads, by all splits that the crossings consider.
  PlanEnumerator(const Graph& graph, const Candidates& candidates, const GraphTuneOptions& options,
                 Crossings* crossings)
      : PlanEnumerator(graph, candidates, options.ends) {
    plan_.target = options.cpu;
    plan_.threads = options.threads;
    crossings_ = crossings;
  }

  void ForEach(const std::function<void(Plan&)>& visit) {
    visit_ = visit;
    Extend(0);
  }

 private:
  void Extend(Graph::NodeId id) {
    if (id == graph_.size()) {
      Plan plan = plan_;
      visit_(plan);
      return;
    }
    const Node& node = graph_.node(id);
    if (node.op->Type() == "Input") return Extend(id + 1);
    const FusablePair* in_front = nullptr;  // of this node, and fused
    for (const FusablePair& pair : pairs_) {
      if (pair.conv == id && fused_.contains(pair.first)) in_front = &pair;
      if (pair.first == id && !RecordsOf(pair.workload).empty()) Fuse(pair);
    }
    if (const auto* conv = graph_.As<ConvOp>(id)) {
      if (in_front && fused_.contains(id)) return;
      for (const Record& record : RecordsOf(in_front ? in_front->workload : conv->workload()))
        for (const Split split : SplitsOf(record)) {
          NodePlan plan{node.name, "Conv", record.layouts, record, 0};
          plan.split = split;
          Choose(std::move(plan), id);
        }
    } else {
      for (const Layout& layout : LayoutsOf(graph_, candidates_).all)
        if (node.op->RunsIn(layout, graph_.InputShapes(id)))
          for (const Split split : SplitsOf(id, layout)) {
            NodePlan plan{node.name, std::string(node.op->Type()), {layout, layout}, std::nullopt, 0};
            plan.split = split;
            Choose(std::move(plan), id);
          }
    }
  }

  template <typename... What>
  std::vector<Split> SplitsOf(const What&... what) const {
    if (crossings_ == nullptr) return {Split::kEven};
    std::vector<Split> splits;
    for (const Deal& deal : crossings_->DealsOf(what...)) splits.push_back(deal.ownership.split);
    return splits;
  }

  void Fuse(const FusablePair& pair) {
    for (const FusablePair& other : pairs_)
      if (other.conv == pair.first && fused_.contains(other.first)) return;
    const Node& node = graph_.node(pair.first);
    fused_.insert(pair.first);
    Choose({node.name, std::string(node.op->Type()), {}, std::nullopt, 0, graph_.node(pair.conv).name},
           pair.first);
    fused_.erase(pair.first);
  }

  void Choose(NodePlan node, Graph::NodeId id) {
    plan_.nodes.push_back(std::move(node));
    Extend(id + 1);
    plan_.nodes.pop_back();
  }

  std::vector<Record> RecordsOf(const ConvWorkload& workload) const {
    const auto found = candidates_.find(WorkloadToString(workload));
    return found == candidates_.end() ? std::vector<Record>() : found->second;
  }

  const Graph& graph_;
  const Candidates& candidates_;
  const std::vector<FusablePair> pairs_;
  std::function<void(Plan&)> visit_;
  std::set<Graph::NodeId> fused_;
  Crossings* crossings_ = nullptr;
  Plan plan_;
};

}  // namespace tilesmith
