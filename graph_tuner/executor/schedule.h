// A plan matched with its graph: for every node, what it reads, what it writes and how it computes.
#pragma once

#include <optional>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

struct NodeSchedule {
  bool live = false;           // an output is reachable from it
  Layout out;                  // of graph inputs: as the caller gives them
  std::vector<Layout> inputs;  // by slot
  bool sliced = false;         // a channel concat whose inputs are written in place
  bool fused_away = false;     // the conv behind it computes it too: no step, no value
  OpPtr tuned;                 // a product with the schedule of its record; null for other nodes
  // For convs; null for other nodes.
  const ConvTemplate* conv_template = nullptr;
  ConvWorkload workload;               // with what is fused in front of it
  std::optional<Graph::NodeId> first;  // the node that is: its data is what inputs[0] says the layout of
  Config config;
  Split split = Split::kEven;
  int region = 0;  // NodePlan::region
  double predicted_seconds = 0;
};

// Where a plan is from: of templates' own defaults for the graph and the CPU, and of configs that were
// checked for them, it is known that they are valid, and they are not checked again.
enum class PlanFrom { kAnywhere, kDefaults };

// Indexed by node id. Throws Error(kUsage) naming the node when the plan lacks it, or gives it a layout, a
// template or a config it cannot have on this CPU; Error(kBadModel) for a tensor that is not of floats.
std::vector<NodeSchedule> ResolveSchedules(const Graph& graph, const Plan& plan, const Target& cpu,
                                           PlanFrom from = PlanFrom::kAnywhere);

}  // namespace tilesmith
