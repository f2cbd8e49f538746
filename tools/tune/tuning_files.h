// What a tuning reads and writes: its log, the user's database, what searchers learn from beforehand.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/planner/tuning_tasks.h"
#include "tools/cli/records.h"
#include "tuner/records/log.h"

namespace tilesmith {

struct TuningPaths {
  std::string log_path = {};  // appended to
  ExistingLog existing_log = ExistingLog::kRefuse;
  std::vector<std::string> history_paths = {};
  std::string cost_model_path = {};
  bool use_database = true;
  std::string database_path = {};  // "": the user's
  bool baselines = false;          // oneDNN is timed, for the tables
};

class TuningFiles {
 public:
  // Opens them and gives the request what they hold and what takes its records. Throws Error(kUsage) when the
  // log exists and is to be refused, Error(kEnvironment) when it cannot be written. All outlive the request.
  TuningFiles(const TuningPaths& paths, const WorkSinks& sinks, TuningRequest* request);
  TuningFiles(const TuningFiles&) = delete;
  TuningFiles& operator=(const TuningFiles&) = delete;

  void SyncLog() { log_->Sync(); }

 private:
  void Log(const Record& record);

  const WorkSinks& sinks_;
  std::optional<TuningDatabase> database_;
  std::optional<LogWriter> log_;
};

// Where the machine's costs are kept for all networks, beside the database; "" where nothing can be written.
std::string MachineCostsPath(const std::string& database_path);

}  // namespace tilesmith
