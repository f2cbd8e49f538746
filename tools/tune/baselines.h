// oneDNN's times of convolutions, for the tables of a tuning.
#pragma once

#include <vector>

#include "tools/tune/tuning_files.h"

namespace tilesmith {

// Fills in the rows' baselines before anything is tuned, since nothing else of ours may run while trials are
// measured: those in f32, for at most a fifth of the time budget. What there is no time for is left out.
// Warns where others use the machine, also where the paths want no baselines. The times are kept beside the
// log, "a.jsonl" -> "a.onednn.jsonl", where going on with it finds them.
void TimeBaselines(const TuningEffort& effort, const TuningPaths& paths, const WorkSinks& sinks,
                   std::vector<TuneRow>& rows, MachineWatch& watch);

}  // namespace tilesmith
