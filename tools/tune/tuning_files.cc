#include "tools/tune/tuning_files.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "layouts/base/error.h"
#include "tools/cli/output_file.h"
#include "tuner/cost_model/training_history.h"

namespace tilesmith {
namespace {

// The database in $XDG_DATA_HOME/tilesmith, by default under ~/.local/share; nothing where there is no home.
std::optional<TuningDatabase> OpenDefaultDatabase(const Target& target) {
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  std::string folder;
  if (data != nullptr && data[0] == '/') {  // the specification wants relative ones ignored
    folder = data;
  } else if (home != nullptr && *home != '\0') {
    folder = std::string(home) + "/.local/share";
  } else {
    return std::nullopt;
  }
  folder += "/tilesmith/";
  return TuningDatabase(folder + DatabaseFileName(target), folder + FormerDatabaseFileName(target));
}

std::optional<TuningDatabase> OpenDatabase(const TuningPaths& paths, const Target& target) {
  if (!paths.use_database) return std::nullopt;
  if (paths.database_path.empty()) return OpenDefaultDatabase(target);
  if (std::filesystem::is_directory(paths.database_path))
    throw Error(ErrorCode::kUsage, fmt::format("{} is a directory, not a database", paths.database_path));
  RequireFormat(paths.database_path, OutputFormat::kLog);
  return TuningDatabase(paths.database_path);
}

}  // namespace

TuningFiles::TuningFiles(const TuningPaths& paths, const WorkSinks& sinks, TuningRequest* request)
    : sinks_(sinks) {
  const Target& target = request->machine->target();
  request->records = KnownRecords(paths.log_path, paths.existing_log, target);
  request->history = std::make_shared<TrainingHistory>();
  for (const Record& record : request->records) request->history->Add(record);
  for (const std::string& path : paths.history_paths) {
    for (const Record& record : LoadRecords(path)) request->history->Add(record);
  }
  if (!paths.cost_model_path.empty()) request->history->Start(LoadCostModel(paths.cost_model_path));
  database_ = OpenDatabase(paths, target);
  if (database_) request->database = &*database_;
  log_.emplace(paths.log_path, paths.existing_log == ExistingLog::kOverwrite);
  request->log = [this](const Record& record) { Log(record); };
}

void TuningFiles::Log(const Record& record) {
  const int lost = log_->times_lost();
  log_->Append(record);
  if (log_->times_lost() == lost) return;
  sinks_.Warn(fmt::format("{} was removed or replaced; goes on in a new file", log_->path()));
}

std::string MachineCostsPath(const std::string& database_path) {
  const std::filesystem::path path = CostsPathFor(database_path);
  std::error_code ignored;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  return std::ofstream(path, std::ios::app) ? path.string() : "";
}

}  // namespace tilesmith
