// Tuning a network's convolutions and choosing schedules, layouts and types for all of it, at once and with a
// plan at any moment.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph_tuner/planner/network_types.h"
#include "graph_tuner/planner/plan_network.h"
#include "graph_tuner/planner/tuning_tasks.h"
#include "graph_tuner/refine/optimize_network.h"

namespace tilesmith {

struct OptimizeEffort {
  // Seconds for all of it since `begin`, on the clock of NowSeconds. Loading the model, calibrating it, a
  // plan without measuring, and the trial or the run in progress are finished whatever they take; what there
  // is no time for then is left out, which a warning says.
  double seconds = 60;
  double begin = NowSeconds();
  std::optional<int64_t> max_weight_bytes = {};
  std::optional<double> max_output_error = {};  // as PlanEffort's; for mixed
  bool shipped = true;                          // the records that come with tilesmith are tried first
  ColdOrWarm conditions = {};
  uint64_t seed = 1;  // of the search and of the data
};

struct OptimizeRequest : OptimizeEffort {
  std::vector<NetworkSource*> sizes;  // the network with each size of its inputs; they outlive the call
  DevicePtr machine;
  QuantizationPtr quantization;  // null: in floats, or calibrated where the precision asks for it
  GraphTuneOptions planning;     // its precision says which types may be chosen
  // Plans of an earlier run, some of which may be for these graphs; empty: there are none.
  std::function<std::vector<Plan>(std::span<const Graph>)> known_plans = {};
  // What is kept is an earlier run's, of mixed, which stays until there is another.
  bool keeps_plan = false;
  // Is given the best plans so far, of each size; of mixed, of the first sizes.
  std::function<void(const std::vector<Plan>&)> keep;
  // Fills in what is known, and what takes records; what it returns lives as long as the request is used.
  // Called for each type that is tuned, behind the others.
  std::function<std::shared_ptr<void>(TuningRequest*)> open_tuning;
  // Records of what was tuned, for mixed.
  std::function<std::vector<Record>()> load_log;
  // Costs as they are measured now, with those that lie beside the database, if it is not null.
  std::function<std::unique_ptr<CostSource>(const TuningDatabase*)> open_costs;
  std::function<std::unique_ptr<CostSource>()> open_costs_to_mix;  // PlanRequest::open_costs, for mixed
  std::vector<std::string> worker;                                 // the measuring worker's command line
};

struct OptimizeProgress {
  NetworkProgress tuning;  // elapsed and left are of everything
  std::string stage;       // what is done now
  int plans = 0;           // kept so far
  // What a run of the first plan and of the best one took; 0 while none has run. Of several sizes, in sum.
  double untuned_seconds = 0, best_seconds = 0;
};

using ShowOptimizing = std::function<void(std::span<const TuneRow>, const OptimizeProgress&)>;

struct OptimizedModel {
  std::vector<TuneRow> rows;
  std::vector<OptimizedPlan> plans;  // for each size of the inputs
  // Of each plan, with another precision than f32, on the CPU, unless it was stopped or there was no time.
  std::vector<OutputDifference> differences;
  std::vector<std::vector<TypeRun>> types;  // of each plan, for mixed, as far as there was time
  int plans_written = 0;
  double first_plan_seconds = 0;  // from `begin` on
  double elapsed_seconds = 0;
  std::vector<std::pair<std::string, double>> spent;  // seconds that are no tuning, by what they went to
  std::optional<std::string> database_path;
  Disturbance disturbance;
  bool stopped = false;  // the best plan until then was kept
};

// Nothing else may run in the process meanwhile. With mixed the network is tuned in each type for a share of
// the time, and what they found is mixed by PlanSizes: what is kept is a plan in f32 until then, or the one
// that was. Where there is no time for that, it is the fastest type's. Throws as CheckTuning and PlanNetwork
// do, and Error(kBadModel) for a network without convolutions; once the first plan is kept a stop is no
// error. Precondition: a CPU, with mixed; a limit on outputs' errors with that alone.
OptimizedModel Optimize(const OptimizeRequest& request, const WorkSinks& sinks,
                        const ShowOptimizing& on_progress = {});

// The network in the one type that the request names. `compares`: whether it is to be told what that does to
// the outputs.
OptimizedModel OptimizeInOneType(const OptimizeRequest& request, bool compares, const WorkSinks& sinks,
                                 const ShowOptimizing& on_progress);

// Does what Optimize says of mixed.
OptimizedModel OptimizeMixed(const OptimizeRequest& request, const WorkSinks& sinks,
                             const ShowOptimizing& on_progress);

}  // namespace tilesmith
