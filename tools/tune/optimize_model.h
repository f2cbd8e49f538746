// Tuning a network's convolutions and choosing schedules and layouts for all of it, at once and with a plan
// at any moment: what `tilesmith optimize` and the APIs do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph_tuner/check/output_errors.h"
#include "graph_tuner/refine/optimize_network.h"
#include "layouts/measure/clock.h"
#include "tools/cli/graph_tuning.h"
#include "tools/doctor/disturbance.h"
#include "tools/tune/graph_tune_model.h"
#include "tools/tune/tune_model.h"

namespace tilesmith {

struct OptimizeModelRequest {
  GraphTuningArguments arguments;  // model, machine, and how to choose; log_path "": LogPathBeside
  std::string plan_path;           // holds the best plan so far, from some seconds on
  // Seconds for all of it since `begin`, on the clock of NowSeconds. Loading the model, calibrating it, a
  // plan without measuring, and the trial or the run in progress are finished whatever they take; what there
  // is no time for then is left out, which a warning says.
  double seconds = 60;
  double begin = NowSeconds();
  // A log that is gone on with keeps what it knows, and a plan of it that fits stays until there is a faster
  // one.
  ExistingLog existing_log = ExistingLog::kRefuse;
  std::optional<int64_t> max_weight_bytes = {};
  std::optional<double> max_output_error = {};  // as GraphTuneModelRequest's; for mixed
  bool baselines = false;                       // oneDNN is timed, for the table
  bool shipped = true;                          // the records that come with tilesmith are tried first
  bool use_database = true;
  std::string database_path = {};   // "": the user's
  std::string conditions = "auto";  // ColdWeights
  uint64_t seed = 1;                // of the search and of the data
  // The measuring worker's command line.
  std::vector<std::string> worker = {"/proc/self/exe", "measure-worker"};
};

struct OptimizeProgress {
  NetworkProgress tuning;  // elapsed and left are of everything
  std::string stage;       // what is done now
  int plans = 0;           // written so far
  // What a run of the first plan and of the best one took; 0 while none has run. Of several sizes, in sum.
  double untuned_seconds = 0, best_seconds = 0;
};
// "3 plans written, 12.31 ms, at first 20.05 ms; solving".
std::string ProgressText(const OptimizeProgress& at);

using ShowOptimizing = std::function<void(std::span<const TuneRow>, const OptimizeProgress&)>;

struct OptimizedModel {
  std::vector<TuneRow> rows;
  std::vector<OptimizedPlan> plans;  // for each size of the inputs (SizesOf)
  // Of each plan, with another precision than f32, on the CPU, unless it was stopped or there was no time.
  std::vector<OutputDifference> differences;
  std::vector<std::vector<TypeRun>> types;  // of each plan, for mixed, as far as there was time
  int plans_written = 0;
  double first_plan_seconds = 0;  // from `begin` on
  double elapsed_seconds = 0;
  std::vector<std::pair<std::string, double>> spent;  // seconds that are no tuning, by what they went to
  std::optional<std::string> database_path;
  Disturbance disturbance;
  bool stopped = false;  // the best plan until then is in the file
};

// Nothing else may run in the process meanwhile. For mixed, on a CPU, the network is tuned in each type for a
// share of the time, and what they found is mixed by GraphTuneModel: the file has a plan in f32 until then,
// or the one that it had. Where there is no time for that, it gets the fastest type's. Throws as TuneModel
// and GraphTuneModel do; once the first plan is written a stop is no error.
OptimizedModel OptimizeModel(const OptimizeModelRequest& request, const WorkSinks& sinks,
                             const ShowOptimizing& on_progress = {});

// Says whether what an earlier run found stays until there is better.
bool GoesOnWithPlan(const OptimizeModelRequest& request);
// A plan file that is gone on with holds nothing of another network: throws Error(kUsage) where it does.
void RequireNetwork(const std::string& path, const std::string& network, const Plan& plan);

// The network in the one type that the request names. `compares`: whether it is to be told what that does to
// the outputs.
OptimizedModel OptimizeInOneType(OptimizeModelRequest request, bool compares, const WorkSinks& sinks,
                                 const ShowOptimizing& on_progress);

// Does what OptimizeModel says of mixed. Precondition: the request is complete, and for a CPU.
OptimizedModel OptimizeMixed(const OptimizeModelRequest& request, const WorkSinks& sinks,
                             const ShowOptimizing& on_progress);

}  // namespace tilesmith
