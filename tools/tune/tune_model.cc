#include "tools/tune/tune_model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tools/tune/tuning_tasks.h"
#include "tuner/first_builds.h"
#include "tuner/measure/process_measurer.h"

namespace tilesmith {

TunedModel TuneModel(TuneModelRequest request, const WorkSinks& sinks, const ShowTuning& on_progress) {
  const double begin = request.begin, time_budget = request.time_budget;
  NetworkTuneOptions options;
  options.seed = request.seed;
  const DevicePtr machine = request.machine;
  const std::vector<std::string> worker = WorkerFor(request.worker, machine->target());
  const auto measure_elsewhere = request.measure_elsewhere;
  TuningTasks tuning(std::move(request), sinks);
  ProcessMeasurer here(worker);
  std::unique_ptr<Measurer> elsewhere;
  if (measure_elsewhere) elsewhere = measure_elsewhere([&] { tuning.SyncLog(); });
  Measurer& measurer = elsewhere ? *elsewhere : here;
  const std::vector<NetworkTask> tasks = tuning.Make();
  std::optional<FirstBuilds> first_builds;
  if (!elsewhere) first_builds.emplace(machine, tasks);
  options.trials = tuning.PlannedTrials();
  if (!tuning.is_network()) options.most_share = 1;
  options.seconds_budget = std::max(0.0, time_budget - (NowSeconds() - begin));
  options.stop_when_flat = tuning.is_network();
  NetworkSinks network_sinks;
  network_sinks.on_record = [&](const Record& record) { tuning.Log(record); };
  network_sinks.on_progress = [&](NetworkProgress at) {
    if (!tuning.is_network()) at.network_seconds = 0;
    if (!elsewhere) tuning.rows()[at.task].disturbance += tuning.watch().EndInterval(here.worker_pid());
    if (on_progress) on_progress(tuning.rows(), at);
  };
  network_sinks.should_stop = [&] { return IsStopped(sinks.stop); };
  tuning.watch().Skip();
  NetworkResult result = TuneNetwork(tasks, options, measurer, network_sinks);
  TunedModel tuned;
  if (tuning.is_network()) tuned.network_seconds = result.network_seconds;
  tuning.Finish(std::move(result));
  tuned.rows = std::move(tuning.rows());
  tuned.database_path = tuning.database_path();
  tuned.elapsed_seconds = NowSeconds() - begin;
  tuned.disturbance = tuning.watch().total();
  tuned.stopped = IsStopped(sinks.stop);
  return tuned;
}

}  // namespace tilesmith
