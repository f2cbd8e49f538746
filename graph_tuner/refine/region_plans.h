// Regions for a plan that runs: layers computed depth first where that takes less.
//
// What a layer takes inside a region is known once it has run there. So a plan is run beside variants of it
// in which as many layers as there is room for are in regions, each variant with bands of another height; and
// from what each layer took in each of them, and what the tensors between cost, the regions are chosen
// (problem/region_choice.h). The result has to prove itself as a whole, like any plan. Source: original.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph_tuner/costs/costs.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/problem/candidates.h"
#include "graph_tuner/refine/plan_measurement.h"
#include "graph_tuner/refine/prediction_loop.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// Runs the plan and its variants by turns, at most one for each band class. Precondition: it has no regions.
//
// In a variant a member has the plan's config made for bands (ConvTemplate::InBands) or, where its template
// has none or does not take blocks that are not all there, the fastest candidate's that has, or a default
// one, in the plan's types. A layer is left out where its tasks are not rows, or where what it touches stays
// in the caches, and a region ends where its buffers would take more than their share of the cache.
//
// The result are plans that are worth a session with others: the one with the regions that take least, whose
// certificate says how far from the least that may be, given what was measured, and, if that comes near the
// plan, the fastest variant, which may be the one in the least memory.
std::vector<RivalPlan> RegionRivals(
    const Graph& graph, const Plan& plan, const Candidates& candidates, CostSource& costs, const Target& cpu,
    const std::function<std::vector<PlanMeasurement>(const std::vector<const Plan*>&)>& measure);

// Where a plan's node is computed depth first, and what is not computed so together with it.
struct RegionFacts {
  int region = 0;                  // its number in the plan; 0: in none, and then only `apart` says something
  std::vector<std::string> nodes;  // of the region
  int64_t band_rows = 0;           // of the region's last node
  int64_t region_bytes = 0;        // of all of its buffers, of each thread
  int64_t buffer_rows = 0, buffer_bytes = 0;   // of the node's own; 0: there is only the whole result
  bool is_whole = false;                       // its result exists whole, for others than the region's nodes
  int64_t computed_rows = 0, result_rows = 0;  // of the node: what is more is computed by two threads
  // Why the region ends here: a sentence for whoever reads the node in none or another, or for the network
  // whose output it is. Of a node in no region why that is so.
  std::vector<std::string> apart;
};

// Precondition: the plan can run and has the node. Throws as CompileNetwork does for regions that cannot be.
RegionFacts FactsOfRegion(const Graph& graph, const Plan& plan, const Candidates& candidates,
                          const Target& cpu, Graph::NodeId id);

// Why a plan has no regions, as far as it can be known of it.
std::string WhyNoRegions(const Graph& graph, const Plan& plan, const Candidates& candidates,
                         const Target& cpu);

}  // namespace tilesmith
