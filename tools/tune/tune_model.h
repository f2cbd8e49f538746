// Tuning the convolutions of a network, of suites or a single one: what `tilesmith tune` and the APIs do.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/cli/targets.h"
#include "tools/tune/tuning_files.h"

namespace tilesmith {

struct TuneModelRequest : TuningEffort, TuningPaths {
  Targets targets;
  // The measuring worker's command line.
  std::vector<std::string> worker = {"/proc/self/exe", "measure-worker"};
  // Where other machines measure: makes what measures there instead, for machines like `machine`, which this
  // one need not be. It is given what syncs the log. Neither oneDNN is timed here then, nor this machine
  // watched.
  std::function<std::unique_ptr<Measurer>(const std::function<void()>& sync)> measure_elsewhere = {};
};

// Times oneDNN (TimeBaselines), asks the database, searches, tells the database. Nothing else may run in the
// process meanwhile. Throws as CheckTuning and TuningFiles do; nothing measured is lost.
TunedTasks TuneModel(TuneModelRequest request, const WorkSinks& sinks, const ShowTuning& on_progress = {});

}  // namespace tilesmith
