// Tuning the convolutions of a network, or of a list: which tasks there are, in which types, and what is
// known of them. A row is one of them as reports see it, and becomes a task of the network tuner.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph_tuner/planner/conv_tasks.h"
#include "graph_tuner/planner/work.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/machine_watch.h"
#include "tuner/cost_model/training_history.h"
#include "tuner/measure/process_measurer.h"
#include "tuner/network_tuner.h"
#include "tuner/precision.h"
#include "tuner/records/database.h"

namespace tilesmith {

struct TuneRow {
  ConvTask task;
  bool cold_weights = false;
  std::optional<double> baseline_seconds = {};  // a rival's; none where it cannot do the task
  double baseline_disturbed_share = 0;
  bool known = false;            // from the database: nothing is measured
  Disturbance disturbance = {};  // while it was searched
  TuneResult result = {};
  DataType factors = DataType::kF32;  // of its templates
  bool quantized = false;             // of the network in bytes, an alternative to floats
};

// Points each fused task, and each in another type than f32, at the tasks it is an alternative to (of one in
// bytes what computes the same before activations and sums), where
// those are among the rows.
void LinkAlternatives(std::span<const TuneRow> rows, std::vector<NetworkTask>& tasks);

// The baseline's time for the network: every task in f32 that is not fused, of a network that is tuned in
// bytes alone every such one of those, as often as it appears. 0 where some is missing.
double BaselineSeconds(std::span<const TuneRow> rows);

// What is tuned, for how long, and what it keeps to.
struct TuningEffort {
  DevicePtr machine;
  int64_t trials = 0;  // per task; 0: the default, or with a time budget as many as fit
  // Seconds for everything since `begin`, on the clock of NowSeconds. Every task gets a trial whatever it
  // takes.
  double time_budget = std::numeric_limits<double>::infinity();
  double begin = NowSeconds();
  TuneOptions options = {};  // the searcher, and what is the same for all tasks
  uint64_t seed = 1;         // of the search and of the data
  AccuracyLimits accuracy = {};
  ColdOrWarm conditions = {};
  Precision precision = Precision::kF32;
  std::vector<ConvTask> quantized = {};  // of the network in bytes too, for mixed precision
  bool fusion = true;                    // a network's fused alternatives to pairs of layers are tasks too
  // The records that come with tilesmith are tried first (tuner/records/shipped.h).
  bool suggest_shipped = false;
};

struct TuningRequest : TuningEffort {
  std::vector<ConvTask> tasks;
  std::span<const Graph> graphs = {};  // of a network, one for each size of its inputs; they outlive the work
  std::vector<Record> records = {};    // what the log holds
  std::shared_ptr<TrainingHistory> history;  // what else there is to learn from, the log's records among it
  TuningDatabase* database = nullptr;        // null: it is neither asked nor told
  std::function<void(const Record&)> log;    // takes each new record
  // Fills in the rows' baselines, which nothing of ours may disturb. Empty: there are none.
  std::function<void(std::vector<TuneRow>&, MachineWatch&)> time_baselines = {};
};

// Leaves out a network's convolutions that nothing but the op's own kernel computes on this device. Throws
// Error(kUsage) for an unknown searcher and Error(kNoCandidate) for a task that no template computes: before
// anything is opened or measured.
void CheckTuning(TuningRequest* request);

class TuningTasks {
 public:
  // Precondition: CheckTuning. `sinks` outlives it.
  TuningTasks(TuningRequest request, const WorkSinks& sinks);

  // A task for each row, in their order. What the database knows of them goes into the log with the first
  // result.
  std::vector<NetworkTask> Make();
  // Trials a task; 0 where time alone limits them.
  int PlannedTrials() const;
  // What the log held before, and what the database had to add to it.
  const std::vector<Record>& known_records() const { return request_.records; }
  // Takes a new record.
  void Log(const Record& record);
  // The results of the rows; the database is told, unless it was stopped.
  void Finish(NetworkResult result);

  bool is_network() const { return !request_.graphs.empty(); }
  std::span<const Graph> graphs() const { return request_.graphs; }
  std::vector<TuneRow>& rows() { return rows_; }
  MachineWatch& watch() { return watch_; }
  std::optional<std::string> database_path() const {
    return request_.database != nullptr ? std::optional(request_.database->path()) : std::nullopt;
  }

 private:
  bool IsCold(const ConvTask& task) const;
  // In which types each task is tuned.
  void MakeRows(const std::vector<ConvTask>& tasks);
  void AddExamples();
  void WarnOfDatabase(const std::vector<std::string>& warnings) const;
  int WantedTrials() const;
  bool counted() const;
  std::vector<Record> UntunedSchedules(const ConvWorkload& workload) const;
  NetworkTask MakeTask(TuneRow& row);
  void TakeFromDatabase(TuneRow& row, NetworkTask& task);
  void LogKnown();
  void Remember();

  TuningRequest request_;
  const WorkSinks& sinks_;
  const DevicePtr machine_;
  bool network_is_cold_ = false;
  std::vector<Plan> untuned_;     // of each graph
  std::vector<Record> unlogged_;  // of the database; until there is a result, something may be refused
  std::vector<TuneRow> rows_;
  MachineWatch watch_;
};

using ShowTuning = std::function<void(std::span<const TuneRow>, const NetworkProgress&)>;

struct TunedTasks {
  std::vector<TuneRow> rows;
  double network_seconds = 0;  // 0 when it is no network, or some task has no time
  std::optional<std::string> database_path;
  double elapsed_seconds = 0;
  Disturbance disturbance;
  bool stopped = false;  // what was measured until then was logged
};

// Times baselines, asks the database, searches, tells the database. `here` measures on this machine, in which
// nothing else may run then; `elsewhere`, where it is not null, on others in its place, for machines like
// the request's. Precondition: CheckTuning. Nothing measured is lost by what is thrown.
TunedTasks TuneTasks(TuningRequest request, ProcessMeasurer& here, Measurer* elsewhere,
                     const WorkSinks& sinks, const ShowTuning& on_progress = {});

}  // namespace tilesmith
