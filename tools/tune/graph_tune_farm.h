// graph-tune where a farm's machines are: what `tilesmith graph-tune --farm` does.
#pragma once

#include <string>
#include <vector>

#include "layouts/base/error.h"
#include "tools/cli/farm.h"
#include "tools/cli/graph_tuning.h"

namespace tilesmith {

struct FarmGraphTuneRequest {
  FarmOptions farm;
  GraphTuningArguments arguments;
  std::vector<std::string> options;  // that were given (Args::GivenOptions), `arguments` among them
  std::string plan_path, save_path, report_path;
};

struct FarmGraphTuned {
  ErrorCode code{};  // 0: done
  std::string error;
  std::string output;  // what graph-tune prints
};

// One machine of the class measures costs and runs plans. The plan file holds the best plan so far as it
// comes, each checked to be one for the network and the class; costs are added to the file here as they come.
// Throws Error(kUsage) and Error(kEnvironment) where FarmJobRun, ChosenClasses and LoadModel do, and
// Error(kInterrupted) when it is stopped, which says whether there is a plan.
FarmGraphTuned GraphTuneOnFarm(const FarmGraphTuneRequest& request, const WorkSinks& sinks);

}  // namespace tilesmith
