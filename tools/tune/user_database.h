// Where the user's tuning database is, and which tasks it already knows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/records/database.h"
#include "tuner/tune.h"

namespace tilesmith {

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
