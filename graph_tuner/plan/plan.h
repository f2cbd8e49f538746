// A plan: the schedules of a whole network, i.e. the optimal schedule records. Values only; plan_file.h reads
// and writes them, executor.h runs them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph_tuner/costs/corrections.h"
#include "layouts/base/split.h"
#include "layouts/base/target.h"
#include "layouts/measure/core_placement.h"
#include "ops/dense/tasks.h"
#include "ops/graph/end_layouts.h"
#include "ops/graph/graph.h"
#include "ops/qdq/qdq_model.h"
#include "tuner/records/accuracy.h"
#include "tuner/records/record.h"

namespace tilesmith {

struct NodePlan {
  std::string node;  // the graph node's name
  std::string op_type;
  // What the node reads, by its first input, and writes. Equal for every op but conv, except that tensors of
  // other types than f32 have theirs in it (NodeLayouts).
  LayoutPair layouts;
  std::optional<Record> record;  // for convs: template, config and how it was measured
  double predicted_seconds = 0;
  // The conv behind it whose kernel computes this node as well: its record is of the fused workload and its
  // layouts are those of both. The node itself then has no layouts, no record and no cost.
  std::string fused_into = {};
  // How its tasks are dealt to threads, where its kernel can; plans that say nothing deal them evenly.
  Split split = Split::kEven;
  // The number of the region that it is computed in, from 1 on (Plan::regions); 0 for none.
  int region = 0;
  // The part of predicted_seconds that it waits since other threads wrote its inputs (crossings.h); 0 where
  // that has no price.
  double crossing_seconds = 0;
};

// A tensor is converted once per distinct target layout, however many consumers share the result. What is
// brought into a concat's slice that the tensor does not own (concat_slices.h) is listed beside that, and has
// from == to when a copy is enough.
struct TransformPlan {
  std::string tensor;  // name of the node that produces it
  Layout from, to;
  double predicted_seconds = 0;
  bool interpolated = false;    // the seconds are an estimate from other sizes
  double crossing_seconds = 0;  // of these, by the prices of crossing (crossings.h); files do not have it
};

// Nodes that are computed depth first, in bands of so many rows of the last one's result
// (executor/regions.h).
struct RegionPlan {
  int64_t band_rows = 1;
  bool operator==(const RegionPlan&) const = default;
};

// What a plan is predicted to take on cores placed so.
struct PlacedPrediction {
  CorePlacement placement;
  double seconds = 0;
};

struct Plan {
  std::string network;
  std::string graph_hash;  // GraphHash of the graph after all passes
  // How the model is quantised, to give that graph; null: as it is.
  std::shared_ptr<const ModelQuantization> quantization = {};
  Target target;
  int threads = 1;
  EndLayouts ends;          // of the tensors it is run with
  AccuracyLimits accuracy;  // what its records were chosen under
  std::string solver;       // "dp", "exhaustive", "heuristic", ...
  std::string certificate;  // "optimal", or the gap to a proved bound, or "none"
  double predicted_seconds = 0;
  CorePlacement placement;  // while the figures behind the prediction were measured
  // At each of the distances that the cores were seen at, if these are several.
  std::vector<PlacedPrediction> at_distances = {};
  std::vector<NodePlan> nodes;  // every node but graph inputs and constants, in graph order
  std::vector<TransformPlan> transforms;
  std::vector<RegionPlan> regions;  // which nodes are in one, these say
  // What running it and other plans by turns has taught of their costs, in the machine's speed of the
  // prediction: under these the plan costs predicted_seconds. Empty when none ran.
  Corrections corrections;
};

// What a node whose first input has the order `in`, and its output the order `out`, reads and writes.
LayoutPair NodeLayouts(const Graph& graph, Graph::NodeId id, const Layout& in, const Layout& out);

// What the plan is predicted to take, or 0 where that is not known: nobody has measured one of its
// convolutions, neither by itself nor in a plan that ran, and the prediction counts it as nothing.
double KnownPrediction(const Plan& plan);
// The one of its predictions that is for cores placed most nearly like `seen`; 0 seconds where
// KnownPrediction is.
PlacedPrediction PredictionFor(const Plan& plan, const CorePlacement& seen);

// Of the region that a node of the plan is in; 0 of one in none.
inline int64_t BandRowsOf(const Plan& plan, const NodePlan& node) {
  return node.region == 0 ? 0 : plan.regions.at(static_cast<size_t>(node.region) - 1).band_rows;
}

// The same schedules, layer by layer.
Plan WithoutRegions(Plan plan);

// Whether two plans for one graph schedule a node alike: layouts, split, template, config, what is fused, and
// the number of its region.
bool SameSchedule(const NodePlan& a, const NodePlan& b);
bool SameSchedules(const Plan& a, const Plan& b);
// Of the network and its schedules, for so many threads: whatever was predicted, or learned, of them.
std::string PlanHash(const Plan& plan);

// Of the plans for the graph with this hash the one for so many threads, or else the first; null where none
// is for it.
const Plan* PlanFor(std::span<const Plan> plans, std::string_view graph_hash, int threads);

// Throws Error(kUsage), "plan: REASON": it is not one for what it is to be used for.
[[noreturn]] void RefusePlan(const std::string& reason);

// By the id of the conv whose kernel computes both.
using FusedNodes = std::map<Graph::NodeId, FusablePair>;

// Throws Error(kUsage) naming the node when the plan fuses what cannot be fused in this network, or into a
// conv whose record is of something else.
FusedNodes FindFusedNodes(const Graph& graph, const Plan& plan);

using ConversionKey = std::pair<std::string, LayoutPair>;  // tensor, canonical layouts (ConversionOf)

// What the plan lists once, or several times at the same price.
struct PlannedConversion {
  double seconds = 0, crossing_seconds = 0;
  int times = 0;
};

// Entries for tensors that the graph does not have are left out: a forced plan may be of another network.
std::map<ConversionKey, PlannedConversion> PlannedConversions(const Graph& graph, const Plan& plan);

// As the record's template estimates them (LoopFeatures::weight_bytes); of a plan those of all its convs.
double PackedWeightBytes(const Record& record, const Target& cpu);
double PackedWeightBytes(const Plan& plan, const Target& cpu);

// Whether a plan has to say how the task is computed. Where it does not, a convolution of bytes is computed
// by a template's default in the plan's layouts (UntunedByteConv), and a product by its op.
inline bool NeedsRecord(const ConvWorkload& workload) { return !workload.bytes && !workload.product; }

enum class DefaultStyle {
  kBlocks,  // ConvTemplate::Default
  kRows,    // ConvTemplate::RowsDefault for so many threads, where a template has it
};

// The default schedule of the first template that supports the workload, or of a later one that is estimated
// to be clearly faster (ConvTemplate::Cycles); unmeasured: seconds is 0, tuner is "default".
Record DefaultRecord(const ConvWorkload& workload, const Target& cpu, int threads,
                     DefaultStyle style = DefaultStyle::kBlocks);

}  // namespace tilesmith
