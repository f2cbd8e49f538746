// Tuning the convolutions of a network, of suites or a single one: what `tilesmith tune` and the APIs do.
// A row is one task as it sees it, and becomes one of the network tuner's.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layouts/measure/clock.h"
#include "tools/bench/conv_bench.h"
#include "tools/cli/machine.h"
#include "tools/cli/progress.h"
#include "tools/cli/records.h"
#include "tools/cli/targets.h"
#include "tools/cli/tasks.h"
#include "tools/doctor/disturbance.h"
#include "tuner/network_tuner.h"
#include "tuner/precision.h"

namespace tilesmith {

struct TuneRow {
  ConvTask task;
  bool cold_weights = false;
  std::optional<OneDnnSide> baseline;  // oneDNN's fastest; none where it cannot do the task
  double baseline_disturbed_share = 0;
  bool known = false;            // from the database: nothing is measured
  Disturbance disturbance = {};  // while it was searched
  TuneResult result;
  DataType factors = DataType::kF32;  // of its templates
  bool quantized = false;             // of the network in bytes, an alternative to floats
};

// What a gain in each task is worth. Of a network: how often it contains the task. Otherwise every task
// counts alike, whatever its size: the inverse of oneDNN's time, or of the work where oneDNN cannot do it.
std::vector<double> WeightsOf(std::span<const TuneRow> rows, bool is_network);

// Points each fused task, and each in another type than f32, at the tasks it is an alternative to (of one in
// bytes what computes the same before activations and sums), where
// those are among the rows.
void LinkAlternatives(std::span<const TuneRow> rows, std::vector<NetworkTask>& tasks);

// oneDNN's time for the network: every task in f32 that is not fused, of a network that is tuned in bytes
// alone every such one of those, as often as it appears. 0 where some is missing.
double OneDnnSeconds(std::span<const TuneRow> rows);

struct TuneModelRequest {
  Targets targets;
  DevicePtr machine;
  std::string log_path;  // appended to
  ExistingLog existing_log = ExistingLog::kRefuse;
  int64_t trials = 0;  // per task; 0: the default, or with a time budget as many as fit
  // Seconds for everything since `begin`, on the clock of NowSeconds. Every task gets a trial whatever it
  // takes.
  double time_budget = std::numeric_limits<double>::infinity();
  double begin = NowSeconds();
  bool baselines = true;     // oneDNN is timed, for the tables
  TuneOptions options = {};  // the searcher, and what is the same for all tasks
  uint64_t seed = 1;         // of the search and of the data
  AccuracyLimits accuracy = {};
  std::string conditions = "auto";  // ColdWeights
  Precision precision = Precision::kF32;
  std::vector<ConvTask> quantized = {};  // of the network in bytes too, for mixed precision
  bool fusion = true;                    // a network's fused alternatives to pairs of layers are tasks too
  std::vector<std::string> history_paths = {};
  std::string cost_model_path = {};
  bool suggest_shipped =
      false;  // the records that come with tilesmith are tried first (tuner/records/shipped.h)
  bool use_database = true;
  std::string database_path = {};  // "": the user's
  // The measuring worker's command line.
  std::vector<std::string> worker = {"/proc/self/exe", "measure-worker"};
  // Where other machines measure: makes what measures there instead, for machines like `machine`, which this
  // one need not be. It is given what syncs the log. Neither oneDNN is timed here then, nor this machine
  // watched.
  std::function<std::unique_ptr<Measurer>(const std::function<void()>& sync)> measure_elsewhere = {};
};

using ShowTuning = std::function<void(std::span<const TuneRow>, const NetworkProgress&)>;

struct TunedModel {
  std::vector<TuneRow> rows;
  double network_seconds = 0;  // 0 when it is no network, or some task has no time
  std::optional<std::string> database_path;
  double elapsed_seconds = 0;
  Disturbance disturbance;
  bool stopped = false;  // what was measured until then is in the log
};

// Times oneDNN, where the file beside the log (baseline_cache.h) does not know it, for at most a fifth of the
// time budget; asks the database, searches, tells the database. Nothing else may run in the process
// meanwhile. Throws Error(kUsage) when the log exists and is to be refused, Error(kNoCandidate) for a task no
// template computes, Error(kEnvironment) when the log cannot be written; nothing measured is lost.
TunedModel TuneModel(TuneModelRequest request, const WorkSinks& sinks, const ShowTuning& on_progress = {});

}  // namespace tilesmith
