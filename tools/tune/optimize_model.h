// What `tilesmith optimize` and the APIs ask the planner: for a model, a tuning log and a plan file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/planner/optimize.h"
#include "tools/cli/graph_tuning.h"
#include "tools/tune/tuning_files.h"

namespace tilesmith {

// A log that is gone on with keeps what it knows, and a plan of it that fits stays until there is a faster
// one.
struct OptimizeModelRequest : OptimizeEffort, TuningPaths {
  GraphTuningArguments
      arguments;          // model, machine, and how to choose; the log is TuningPaths', "": LogPathBeside
  std::string plan_path;  // holds the best plan so far, from some seconds on
  // The measuring worker's command line.
  std::vector<std::string> worker = {"/proc/self/exe", "measure-worker"};
};

// "3 plans written, 12.31 ms, at first 20.05 ms; solving".
std::string ProgressText(const OptimizeProgress& at);

// Nothing else may run in the process meanwhile. Throws as Optimize and TuningFiles do, Error(kUsage) for a
// plan file that is gone on with and holds another network, and for a limit on outputs' errors without mixed.
OptimizedModel OptimizeModel(OptimizeModelRequest request, const WorkSinks& sinks,
                             const ShowOptimizing& on_progress = {});

}  // namespace tilesmith
