// The convolutions to tune, and what is known of them, by the log and the user's database: what TuneModel and
// OptimizeModel have alike.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "tools/doctor/disturbance.h"
#include "tools/tune/baseline_cache.h"
#include "tools/tune/tune_model.h"
#include "tuner/cost_model/training_history.h"
#include "tuner/network_tuner.h"
#include "tuner/records/database.h"
#include "tuner/records/log.h"
#include "tuner/tune.h"

namespace tilesmith {

class TuningTasks {
 public:
  // Opens the log, times oneDNN where the request wants it and opens the database; errors are TuneModel's.
  // `sinks` outlives it.
  TuningTasks(TuneModelRequest request, const WorkSinks& sinks);

  // A task for each row, in their order. What the database knows of them goes into the log with the first
  // result.
  std::vector<NetworkTask> Make();
  // Trials a task; 0 where time alone limits them.
  int PlannedTrials() const;
  // What the log held before, and what the database had to add to it.
  const std::vector<Record>& known_records() const { return records_; }
  // Appends a new record.
  void Log(const Record& record);
  void SyncLog() { log_->Sync(); }
  // The results of the rows; the database is told, unless it was stopped.
  void Finish(NetworkResult result);

  bool is_network() const { return request_.targets.is_network(); }
  const std::vector<Graph>& graphs() const { return request_.targets.graphs; }
  std::vector<TuneRow>& rows() { return rows_; }
  MachineWatch& watch() { return watch_; }
  std::optional<std::string> database_path() const {
    return database_ ? std::optional(database_->path()) : std::nullopt;
  }

 private:
  bool IsCold(const ConvTask& task) const;
  void LeaveOutWhatRunsAsOps(std::vector<ConvTask>& tasks) const;
  void CheckSupported(const std::vector<ConvTask>& tasks) const;
  // In which types each task is tuned.
  void MakeRows(const std::vector<ConvTask>& tasks);
  void MeasureBaselines();
  void MeasureBaseline(TuneRow& row, std::optional<BaselineCache>& cache);
  void OpenDatabase();
  void AddExamples();
  void WarnOfDatabase(const std::vector<std::string>& warnings);
  int WantedTrials() const;
  bool counted() const;
  std::vector<Record> UntunedSchedules(const ConvWorkload& workload) const;
  NetworkTask MakeTask(TuneRow& row);
  void TakeFromDatabase(TuneRow& row, NetworkTask& task);
  void LogKnown();
  void Remember();

  TuneModelRequest request_;
  const WorkSinks& sinks_;
  const DevicePtr machine_;
  bool network_is_cold_ = false;
  std::vector<Record> records_;
  std::vector<Plan> untuned_;  // of each graph
  std::optional<LogWriter> log_;
  std::vector<Record> unlogged_;  // of the database; until there is a result, something may be refused
  const std::shared_ptr<TrainingHistory> history_ = std::make_shared<TrainingHistory>();
  std::optional<TuningDatabase> database_;
  std::vector<TuneRow> rows_;
  MachineWatch watch_;
};

// The database in $XDG_DATA_HOME/tilesmith, by default under ~/.local/share; nothing where there is no home.
std::optional<TuningDatabase> OpenDefaultDatabase(const Target& target);

// Where the machine's costs are kept for all networks, beside the database; "" where nothing can be written.
std::string MachineCostsPath(const std::string& database_path);

struct KnownTask {
  std::vector<Record> records;  // within the limits
  bool enough = false;          // its task was given at least the trials wanted
};
// Enough are so many trials, when one of the request's templates came out of them with a full measurement.
KnownTask FindKnown(TuningDatabase& database, const TuneRequest& request, int wanted_trials);

}  // namespace tilesmith
