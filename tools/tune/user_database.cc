#include "tools/tune/user_database.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tools/cli/records.h"

namespace tilesmith {

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

std::string MachineCostsPath(const std::string& database_path) {
  const std::filesystem::path path = CostsPathFor(database_path);
  std::error_code ignored;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  return std::ofstream(path, std::ios::app) ? path.string() : "";
}

KnownTask FindKnown(TuningDatabase& database, const TuneRequest& request, int wanted_trials) {
  const auto is_result = [&](const Record& record) {
    return record.status == TrialStatus::kOk && !record.early_stopped &&
           std::ranges::find(request.templates, record.template_name, &ConvTemplate::Name) !=
               request.templates.end();
  };
  KnownTask known;
  known.records =
      AcceptedRecords(request.accuracy, database.Find(request.workload, request.cpu, request.conditions));
  known.enough =
      std::ranges::any_of(known.records, is_result) && TrialsBehind(known.records) >= wanted_trials;
  return known;
}

}  // namespace tilesmith
