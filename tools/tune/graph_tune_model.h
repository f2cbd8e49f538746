// Choosing schedules and layouts of a whole network from a tuning log, and running what was chosen: what
// `tilesmith graph-tune` and the APIs do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/check/output_errors.h"
#include "graph_tuner/refine/prediction_differences.h"
#include "graph_tuner/refine/prediction_loop.h"
#include "layouts/measure/clock.h"
#include "tools/cli/graph_tuning.h"
#include "tools/doctor/machine_watch.h"
#include "tools/network/baseline_runs.h"

namespace tilesmith {

inline constexpr int64_t kMaxRounds = 1000;  // that anybody would ask for

struct GraphTuneModelRequest {
  GraphTuningArguments arguments;  // model, machine, log, and how to choose
  DevicePtr machine = {};          // null: opened as the arguments say
  std::string plan_path;           // written as soon as there is a plan worth having
  int64_t rounds = 3;              // plans to run at most, learning from each
  double seconds = 1;              // for each plan and each baseline that is run, at most
  // Seconds for all of it since `begin`, on the clock of NowSeconds. What a first plan needs, its solution
  // and the costs that are not known yet, is done whatever it takes.
  double time_budget = 90;
  double begin = NowSeconds();
  std::optional<int64_t> max_weight_bytes = {};
  // How far outputs may be off, relative to f32's (OutputErrors, output_errors.h); none: any.
  std::optional<double> max_output_error = {};
  bool baselines = true;
  // For a small share of the usual time: costs are guessed until a solution pays them (lazy_costs.h), and
  // what a layer does to the outputs is seen on one sample.
  bool hurried = false;
  bool variants = false;          // the log's next fastest configs are tried in the network, too
  std::vector<Plan> others = {};  // for other sizes of the inputs: the file holds them, too
  // By which mixed quantises; null: the model is calibrated.
  std::shared_ptr<const ModelQuantization> calibrated = {};
  // That were found before, of the network in any type: run beside the solutions of the form that they are
  // of.
  std::vector<RivalPlan> known = {};
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

struct GraphTunedModel {
  Graph graph;
  DevicePtr machine;
  RefinedPlan refined;     // not finished when the time was over before
  int64_t candidates = 0;  // records that could be chosen
  // Where other types than f32 were allowed: the plan's, measured, and predicted where there was a limit.
  std::optional<double> output_error = {}, predicted_output_error = {};
  ErrorSquares bf16_squares = {};  // where there was a limit
  // Where other types than f32 were allowed, as far as there was time.
  std::vector<TypeRun> types = {};
  std::vector<StepDifference> steps;
  BaselineRuns baselines;  // beside the plan; none when the time was over before
  MachineWatch watch;      // of the plans' turns
  bool stopped = false;    // the best plan until then is in the file
};

// Nothing else may run in the process meanwhile. The file holds the best plan so far from the first solution
// on. Throws Error(kUsage) when there is nothing to choose from, Error(kEnvironment) when the plan cannot be
// written, and Error(kInterrupted) when it is stopped before there is a plan.
GraphTunedModel GraphTuneModel(const GraphTuneModelRequest& request, const WorkSinks& sinks);

// The same for every size of the model's inputs (SizesOf), one after the other, each with its share of the
// time that is left; the file holds a plan for each. `on_tuned` is called behind each, with its request.
// Throws Error(kInterrupted), which says what the file holds, behind the size in which it is stopped.
void GraphTuneSizes(
    const GraphTuneModelRequest& request, const WorkSinks& sinks,
    const std::function<void(const GraphTuneModelRequest&, const GraphTunedModel&)>& on_tuned = {});

}  // namespace tilesmith
