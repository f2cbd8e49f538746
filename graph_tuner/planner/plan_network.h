// Choosing schedules, layouts and types of a whole network, and running what was chosen.
//
// The planner is given all that it works on: the network, the log's records, what costs are measured with. It
// knows neither files nor the command line.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph_tuner/check/output_errors.h"
#include "graph_tuner/planner/network_source.h"
#include "graph_tuner/planner/plan_runs.h"
#include "graph_tuner/planner/work.h"
#include "graph_tuner/refine/prediction_differences.h"
#include "graph_tuner/refine/prediction_loop.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/machine_watch.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {

inline constexpr int64_t kMaxRounds = 1000;  // that anybody would ask for

// What a plan may cost, and what it keeps to.
struct PlanEffort {
  int64_t rounds = 3;  // plans to run at most, learning from each
  double seconds = 1;  // for each plan and each baseline that is run, at most
  // Seconds for all of it since `begin`, on the clock of NowSeconds. What a first plan needs, its solution
  // and the costs that are not known yet, is done whatever it takes.
  double time_budget = 90;
  double begin = NowSeconds();
  std::optional<int64_t> max_weight_bytes = {};
  // How far outputs may be off, relative to f32's (OutputErrors, output_errors.h); none: any.
  std::optional<double> max_output_error = {};
  bool baselines = true;
  // There is a small share of the usual time: costs are guessed until a solution pays them (lazy_costs.h),
  // and what a layer does to the outputs is seen on one sample.
  bool hurried = false;
  bool variants = false;  // the log's next fastest configs are tried in the network, too
  // These were found before, of the network in any type, and run beside the solutions of the form that they
  // are of.
  std::vector<RivalPlan> known = {};
};

struct PlanRequest : PlanEffort {
  NetworkSource* network = nullptr;  // outlives the call, as the log does
  DevicePtr machine;
  QuantizationPtr quantization;  // null: in floats
  const std::vector<Record>* log = nullptr;
  // Costs as they are measured now; called while the machine's cores are pinned.
  std::function<std::unique_ptr<CostSource>()> open_costs;
  GraphTuneOptions tuning;  // its precision says which types may be chosen
  // Is given the best plan so far, from the first solution on; empty: nobody wants it.
  std::function<void(const Plan&)> keep;
};

// The network in some types, run by turns with the plan.
struct TypeRun {
  std::string name;        // "f32", "bf16", "int8", "mixed"
  std::string note = {};   // why it was not run, or what else there is to say
  double seconds = 0;      // 0 when it was not run
  PairedRatio ratio = {};  // its seconds / the plan's
  bool is_plan = false;
  std::optional<OutputDifference> difference = {};  // from f32, on the samples
};

struct PlannedNetwork {
  Graph graph;
  DevicePtr machine;
  RefinedPlan refined;     // not finished when the time was over before
  int64_t candidates = 0;  // records that could be chosen
  // The plan's where other types than f32 were allowed, measured, and predicted where there was a limit.
  std::optional<double> output_error = {}, predicted_output_error = {};
  ErrorSquares bf16_squares = {};  // where there was a limit
  // Filled where other types than f32 were allowed, as far as there was time.
  std::vector<TypeRun> types = {};
  std::vector<StepDifference> steps;
  BaselineRuns baselines;  // beside the plan; none when the time was over before
  MachineWatch watch;      // of the plans' turns
  bool stopped = false;    // the best plan until then was kept
};

// Nothing else may run in the process meanwhile. With mixed, on a CPU, and no quantization yet the planner
// decides what is quantised (PlanMixed). Throws Error(kUsage) when there is nothing to choose from, for a
// number of rounds and for a limit on errors that make no sense, and Error(kInterrupted) when it is stopped
// before there is a plan.
PlannedNetwork PlanNetwork(const PlanRequest& request, const WorkSinks& sinks);

// Plans every size of a network's inputs, one after the other, each with its share of the time that is left;
// the first with the request's quantization, or calibrated where it is in int8. Which layers are quantised,
// and how, is decided in the first size. `keep` is given a plan for each size so far, the best from the first
// solution on; `on_planned` is called behind each, and the last one is a size in which it was stopped. The
// request's `network` and `keep` do not count. Throws as PlanNetwork does.
void PlanSizes(PlanRequest request, std::span<NetworkSource* const> sizes,
               const std::function<void(const std::vector<Plan>&)>& keep, const WorkSinks& sinks,
               const std::function<void(size_t size, const PlannedNetwork&)>& on_planned);

// What is known of the errors of a form that is quantised: `of` holds outputs against the network in floats.
struct KnownErrors {
  const OutputErrors& of;
  ErrorSquares squares;  // of its convolutions in bf16
  double of_bytes = 0;   // the square of what its layers in bytes do
};

// The same of one form of the network, in floats or as the request's quantization says, mixed being f32 and
// bf16, beside no other types but the request's own. Without known errors those of a form in floats are
// measured; a limit on those of a quantised one needs them.
PlannedNetwork PlanForm(const PlanRequest& request, const WorkSinks& sinks,
                        const KnownErrors* known = nullptr);

// The network is tuned in floats, quantised as far as it can be, and with the layers quantised that pay
// (ChooseTypes); each gets its share of the time. All of them then run by turns: the plan is the fastest
// whose error is within the request's limit, so that it is never slower than a uniform one that is. Where
// layers do more to the outputs than the sum of their squares says, the limit on that is tightened. A model
// that cannot be quantised is tuned in floats alone, with a warning. Precondition: the request
// has no quantization. Otherwise as PlanNetwork.
PlannedNetwork PlanMixed(const PlanRequest& request, const WorkSinks& sinks);

// Runs f32, bf16 where the CPU has it, and the plan by turns, as far as there is time.
void CompareTypes(const PlanRequest& request, const WorkSinks& sinks, PlannedNetwork* planned);

// The fastest record of each workload, by its canonical text.
using FastestByWorkload = std::map<std::string, Record>;

// Picks the fastest record of each workload, whatever its layouts.
FastestByWorkload FastestOf(const BestByWorkload& best);

// A plan without a graph tuner: every task in its fastest schedule, what lies between in the layouts that
// come of it; where there is none, in the default one. HeuristicPlan where there is none of any task.
Plan PlanOfFastest(const Graph& graph, const DevicePtr& machine, const FastestByWorkload& fastest);

}  // namespace tilesmith
