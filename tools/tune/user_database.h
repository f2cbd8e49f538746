// Where the user's tuning database is, and which tasks it already knows.
#pragma once

#include <optional>
#include <string>

#include "tuner/accuracy.h"
#include "tuner/database.h"

namespace tilesmith {

// $XDG_DATA_HOME/tilesmith/TARGET.jsonl, by default under ~/.local/share; "" where there is no home.
std::string DefaultDatabasePath(const Target& target);

struct KnownTask {
  std::vector<Record> records;  // within the limits
  bool enough = false;          // its task was given at least the trials wanted
};
KnownTask FindKnown(const TuningDatabase& database, const ConvWorkload& workload, const Target& target,
                    const MeasureConditions& conditions, const AccuracyLimits& limits, int wanted_trials);

}  // namespace tilesmith
