// Why a network's best plan is as it is, and what else would cost.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/explain/explain.h"
#include "graph_tuner/explain/layout_tries.h"
#include "graph_tuner/planner/plan_network.h"
#include "graph_tuner/refine/region_plans.h"

namespace tilesmith {

struct PlanQuestion {
  std::string node = {};              // "": all nodes in a line each
  std::optional<Layout> layout = {};  // is asked about
  int64_t plans = 3;                  // how many of the best plans are compared, without a node
  // Gives a plan of the network that can run, to be held against the best one; empty: there is none.
  std::function<Plan(const Graph&)> open_plan = {};
};

// A node that has a choice, and what it has otherwise: what the given plan has or, without one, the
// runner-up. None where the given plan has what the log has not.
struct ExplainedNode {
  NodePlan best;
  std::optional<ExplainedChoice> other;
};

// A convolution in the layout that is asked about: its best choice that has it, if there is one.
struct ExplainedConv {
  NodePlan best;
  std::optional<ExplainedChoice> closest;
  LayoutTries tries;
};

// A plan beside the best one of today.
struct GivenPlan {
  Plan plan;
  double layouts_seconds = 0;        // of the best plan that has its choices, by this log
  size_t missing = 0;                // nodes whose choices this log has not
  std::vector<CostTerm> terms = {};  // what that plan pays more
  // On CPUs, of the node that is asked about; without one, why the plan has no regions, if it has none.
  std::optional<RegionFacts> region = {};
  std::string no_regions = {};
};

// Plain values, but for what they are said of.
struct ExplainedPlan {
  std::unique_ptr<const Graph> graph;
  std::unique_ptr<CostSource> costs;
  std::unique_ptr<const NetworkProblem> problem;
  std::unique_ptr<const SolvedNetwork> solved;
  std::optional<GivenPlan> given;

  // For a node: every way to compute it, the best plan's first.
  std::vector<ExplainedChoice> options = {};
  // For a node and a layout: was it tried. Empty but for convolutions.
  LayoutTries tries = {};

  // For a layout without a node: what the network takes with it wherever possible.
  double uniform_seconds = 0;
  std::vector<ExplainedConv> convolutions = {};

  // Without either.
  std::vector<ExplainedNode> nodes = {};
  std::vector<RankedPlan> plans = {};
};

// What a plan's node has, if today's problem still has it.
std::optional<NodeChoice> GivenChoice(const ExplainedPlan& explained, Graph::NodeId node);

// Of the request only what is planned counts, not the effort. Costs that are not known yet are measured.
// Throws Error(kUsage) for a node that is not there, naming those with a similar name; Error(kInterrupted)
// when it is stopped; and as `open_plan` and NetworkProblem do.
ExplainedPlan ExplainPlan(const PlanRequest& request, const PlanQuestion& question, const WorkSinks& sinks);

// What a layer takes, and does to the outputs, in each type.
struct TypedNode {
  std::string type;                         // "float", or "int8"
  std::optional<double> node_seconds = {};  // of the best plan, by the log; none where it has no such node
  double network_seconds = 0;               // of that plan, conversions around the node in it
  double output_error = 0;                  // measured, relative to f32
  bool is_asked = false;                    // as the request's model has it
};

// What the network that is quantised so, or with null in floats, calls a layer which is known by the name of
// its node or tensor in the model: another name only where it is computed in bytes.
std::string NodeOfLayer(const NetworkSource& network, const QuantizationPtr& quantization,
                        const std::string& name);

// A layer that can be quantised both ways, all others as the request has them: in floats, where it has no
// quantization, else as that says. Each way is solved, exactly, and its plan run on the network's samples.
// `node` is the name of its node or tensor in the model; empty for one that cannot be quantised. Of the
// request only what is planned counts, not the effort. Precondition: the request has a quantization, or the
// network can be calibrated.
std::vector<TypedNode> ExplainTypes(const PlanRequest& request, const std::string& node,
                                    const WorkSinks& sinks);

}  // namespace tilesmith
