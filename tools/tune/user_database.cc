#include "tools/tune/user_database.h"

#include <cstdlib>

namespace tilesmith {

std::string DefaultDatabasePath(const Target& target) {
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  std::string folder;
  if (data != nullptr && data[0] == '/') {  // the specification wants relative ones ignored
    folder = data;
  } else if (home != nullptr && *home != '\0') {
    folder = std::string(home) + "/.local/share";
  } else {
    return "";
  }
  return folder + "/tilesmith/" + DatabaseFileName(target);
}

KnownTask FindKnown(const TuningDatabase& database, const ConvWorkload& workload, const Target& target,
                    const MeasureConditions& conditions, const AccuracyLimits& limits, int wanted_trials) {
  KnownTask known;
  known.records = AcceptedRecords(limits, database.Find(workload, target, conditions));
  known.enough = !known.records.empty() && TrialsBehind(known.records) >= wanted_trials;
  return known;
}

}  // namespace tilesmith
