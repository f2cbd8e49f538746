#include "tools/tune/tune_model.h"

#include <utility>

#include "tools/tune/baselines.h"

namespace tilesmith {

TunedTasks TuneModel(TuneModelRequest request, const WorkSinks& sinks, const ShowTuning& on_progress) {
  TuningRequest tuning;
  static_cast<TuningEffort&>(tuning) = request;
  tuning.tasks = std::move(request.targets.tasks);
  tuning.graphs = request.targets.graphs;
  CheckTuning(&tuning);
  TuningFiles files(request, sinks, &tuning);
  ProcessMeasurer here(WorkerFor(request.worker, request.machine->target()));
  std::unique_ptr<Measurer> elsewhere;
  if (request.measure_elsewhere) {
    elsewhere = request.measure_elsewhere([&] { files.SyncLog(); });
  } else {
    tuning.time_baselines = [&](std::vector<TuneRow>& rows, MachineWatch& watch) {
      TimeBaselines(request, request, sinks, rows, watch);
    };
  }
  return TuneTasks(std::move(tuning), here, elsewhere.get(), sinks, on_progress);
}

}  // namespace tilesmith
