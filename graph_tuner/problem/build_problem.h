// From a network to the layout problem, and back from its solution to a plan.
//
// Variables: a conv has two, the layouts it reads and writes, joined by an edge with the seconds of its
// candidate for each pair (infinite where there is none); its residual input is in the layout it writes.
// Every other op has one, the layout all its tensors are in, priced per layout. Graph inputs are in the
// layout the caller gives them in, and graph outputs are read at the end in the one the caller wants. Views
// read and give NCHW and cost nothing. Constants have no variable: they are brought into the right layout at
// load time. Tensors that are not 4-D are NCHW.
//
// A pair of nodes that fused candidates exist for (ops/dense/tasks.h) may be computed together: the first
// gets an option "fused" for each layout f that they read, and so does the input of the conv behind it;
// between the two only the same fused options, or none, go together. With them the tensor in between has no
// layout and no transforms, the first node reads f at no cost of its own, and the conv costs the whole fused
// candidate from f to its output's layout.
//
// A tensor read in a layout other than its own is charged one transform per distinct layout, however many
// consumers share it (AddConversions, layout_problem.h). A concat over channels costs nothing by itself in a
// layout in which it is sliceable (concat_slices.h): the inputs that own their slices are ordinary reads,
// which their producers or their transforms write in place; each other input is charged a copy from its own
// layout into its slice, or a transform that ends there. In any other layout a concat costs its copying
// kernel.
//
// Where what crosses from thread to thread has a price, an option is a layout and how the node's tasks are
// dealt (plan/crossings.h), which a conv's two variables agree in. What a node waits for depends on its own
// option and on its input's producer's, whatever transform lies between, so it is charged on the edge of
// these two; what it pays for writing, by its own option alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/costs/corrections.h"
#include "graph_tuner/costs/costs.h"
#include "graph_tuner/plan/crossings.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/problem/candidates.h"
#include "graph_tuner/problem/error_price.h"
#include "graph_tuner/solvers/layout_problem.h"
#include "ops/graph/end_layouts.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// The variables of one node; equal for every op but conv, absent for constants.
struct NodeVariables {
  std::optional<LayoutProblem::VarId> in, out;
  // The options' meaning. Fused ones come last and have no layout on the side of the other node.
  std::vector<std::optional<Layout>> in_layouts, out_layouts;
  std::vector<Ownership> in_owners, out_owners;     // of what is computed with the option
  std::vector<std::vector<const Record*>> records;  // convs: [in option][out option], null where none
  // Likewise of convs, and of other ops for their options: Deal::as_even.
  std::vector<std::vector<bool>> as_even;
};

struct BuiltProblem {
  LayoutProblem problem;
  std::vector<NodeVariables> nodes;  // by node id; records point into the candidates
};

// What ops other than convs may run in: `all` of them, as far as the op allows; and the graph's ends.
struct TolerantLayouts {
  std::vector<Layout> all;  // NCHW first
  EndLayouts ends;
};
// NCHW, every layout that appears among the candidates, and those that ops have by default.
TolerantLayouts LayoutsOf(const Graph& graph, const Candidates& candidates);

// What convs are charged for besides time.
struct ConvPrice {
  WeightPrice weights = {};
  double seconds_per_square = 0;
  const ErrorBudget* errors = nullptr;  // outlives the price; may be missing where squares have none
  double Of(const std::string& conv, const Record& record) const;  // in seconds
};

// A record with one way to deal its tasks.
struct DealtRecord {
  const Record* record = nullptr;
  Deal deal;
  double weight_seconds = 0;  // Crossings::WeightSeconds
};
// WorkloadToString(workload) -> its candidates in each split worth considering. They point into `candidates`.
using DealtCandidates = std::map<std::string, std::vector<DealtRecord>>;
DealtCandidates DealAll(const Candidates& candidates, Crossings& crossings);

// The problem of the graph, with the costs and the team, that `crossings` is of, by which the
// candidates are dealt. Precondition: every conv has candidates. Fused workloads need none. Costs are the
// corrected ones, those of convs with their price.
BuiltProblem BuildProblem(const DealtCandidates& candidates, const TolerantLayouts& layouts,
                          Crossings& crossings, const Corrections& corrections = {},
                          const ConvPrice& price = {});

// The chosen layouts and records, in graph order, without any price (PricePlan, price_plan.h, adds them).
std::vector<NodePlan> ChosenNodes(const Graph& graph, const BuiltProblem& built,
                                  const Assignment& assignment);

}  // namespace tilesmith
