// Plan files: the optimal schedule records of a network.
//
// JSON lines. First a header,
//   {"tilesmith_plan":1,"network":"resnet50","graph_hash":"...","target":{...},"threads":2,"solver":"dp",
//    "certificate":"optimal","predicted_seconds":0.0161}
// then a line per node in graph order and a line per transform:
//   {"node":"pool1","op":"MaxPool","layouts":["NCHW16c","NCHW16c"],"predicted_seconds":4.1e-05}
//   {"node":"conv1","op":"Conv",...,"split":"rows","crossing_seconds":2e-06,"predicted_seconds":4.1e-05}
//   {"transform":"input","from":"NCHW","to":"NCHW16c","predicted_seconds":1.2e-05}
// Plans for several sizes of the inputs stand one behind the other, told apart by their graph's hash.
// A header of a plan whose graph inputs or outputs are not NCHW says "input_layout", "output_layout".
// One whose target is reproducible says by which "order" it adds (ops/base/order.h); other versions are
// refused. One whose prediction was measured on several threads says "barrier_seconds" and
// "arithmetic_seconds" (layouts/measure/core_placement.h); where the cores were seen at several distances,
// what it is predicted to take at each:
// "at_distances":[{"barrier_seconds":6.4e-08,"predicted_seconds":0.0161},...]. A transform whose seconds are
// an estimate carries "interpolated":true. A conv's node line is a tuning record (tuner/records/record.h)
// with the node's three fields added. One that was never measured carries "unmeasured":true and 0 seconds,
// which log readers refuse. A node that the conv behind it computes as well names it instead of layouts, and
// that conv's workload is the fused one:
//   {"node":"bn1","op":"ScaleShift","fused_into":"conv2","predicted_seconds":0}
// Nodes that are computed depth first (executor/regions.h) name their region, numbered from 1 on, of which a
// line in front of the nodes says in how many rows of its last node's result a band is:
//   {"region":1,"band_rows":4}
//   {"node":"conv1","op":"Conv",...,"in_region":1,"predicted_seconds":4.1e-05}
// A plan that was run beside others says what was learned of a node's options and of a tensor's conversions,
// its own and theirs (Correction, costs/corrections.h):
//   {"corrected":"pool1","option":"NCHW16c","stand_alone_seconds":3.9e-05,"seconds":4.1e-05}
//   {"corrected_tensor":"input","option":"NCHW -> NCHW16c","stand_alone_seconds":1.1e-05,"seconds":1.2e-05}
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"

namespace tilesmith {

constexpr int kPlanFormat = 1;

// Replaces `path` atomically: readers see the old file or the new one, also after a crash. Throws
// Error(kEnvironment) naming the file and the cause. A file may hold plans of one network for several sizes
// of its inputs, one behind the other, each from its header on.
void WritePlan(const std::string& path, const Plan& plan);
void WritePlans(const std::string& path, std::span<const Plan> plans);

// Throws Error(kEnvironment) when the file cannot be read, Error(kUsage) as "plan.jsonl:3: ..." otherwise. A
// plan runs without its corrections, so one of them that is torn or makes no sense costs that line:
// `skipped`, if given, gets a "plan.jsonl:9: skipped: ..." for each.
std::vector<Plan> ReadPlans(const std::string& path, std::vector<std::string>* skipped = nullptr);
// Likewise, of a file that holds one plan.
Plan ReadPlan(const std::string& path, std::vector<std::string>* skipped = nullptr);
// The first plan without its nodes, transforms and corrections. Throws as ReadPlans does.
Plan ReadPlanHeader(const std::string& path);

// Throws Error(kUsage) with the reason when the plan does not belong to this network, machine, version of
// tilesmith and thread count, or lacks a node, or has another op or workload for it. With `force` the
// network's hash, the machine, the version and the threads may differ; the nodes must still match.
void CheckPlan(const Plan& plan, const Graph& graph, const Target& cpu, int threads, bool force = false);

}  // namespace tilesmith
