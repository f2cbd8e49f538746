#include "tools/tune/tune_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
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

namespace {

// Scale, shift and activation as ops of their own: the tensor is read and written once more.
double InputOpsSeconds(const ConvWorkload& workload) {
  constexpr double kBytesPerSecond = 20e9;
  const auto bytes = static_cast<double>(ElementCount(workload.main_input_shape()) * sizeof(float));
  return workload.pre.any() ? 2 * bytes / kBytesPerSecond : 0;
}

// Sizes alone.
std::string GeometryOf(ConvWorkload workload) {
  workload.post = {};
  workload.bytes.reset();
  return WorkloadToString(workload);
}

// The first row in floats with the same sizes, for one in bytes.
std::vector<size_t> FloatsLike(const ConvWorkload& workload, std::span<const TuneRow> rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const ConvWorkload& other = rows[i].task.workload;
    if (!other.bytes && !other.fused() && GeometryOf(other) == GeometryOf(workload)) return {i};
  }
  return {};
}

}  // namespace

std::vector<double> WeightsOf(std::span<const TuneRow> rows, bool is_network) {
  constexpr double kFlopsPerSecond = 1e11;
  std::vector<double> weights;
  for (const TuneRow& row : rows) {
    const double seconds = row.baseline ? row.baseline->seconds : row.task.workload.flops() / kFlopsPerSecond;
    weights.push_back(is_network ? static_cast<double>(row.task.count) : 1 / seconds);
  }
  return weights;
}

void LinkAlternatives(std::span<const TuneRow> rows, std::vector<NetworkTask>& tasks) {
  std::map<std::string, size_t> by_workload;
  for (size_t i = 0; i < rows.size(); ++i) by_workload.emplace(WorkloadToString(rows[i].task.workload), i);
  for (size_t i = 0; i < rows.size(); ++i) {
    const ConvWorkload& workload = rows[i].task.workload;
    if (rows[i].quantized) tasks[i].replaces = FloatsLike(workload, rows);
    const bool other_type = rows[i].factors != DataType::kF32;
    if (!workload.fused() && !other_type) continue;
    std::vector<ConvWorkload> parts = workload.before;
    parts.push_back(workload.fused() ? workload.main_conv() : workload);
    std::vector<size_t> replaces;
    for (const ConvWorkload& part : parts) {
      const auto found = by_workload.find(WorkloadToString(part));
      if (found != by_workload.end() && found->second != i) replaces.push_back(found->second);
    }
    if (replaces.size() < parts.size()) continue;  // tuned for its own sake
    tasks[i].replaces = std::move(replaces);
    tasks[i].replaced_seconds = InputOpsSeconds(workload);
  }
}

double OneDnnSeconds(std::span<const TuneRow> rows) {
  double total = 0;
  for (const TuneRow& row : rows) {
    const ConvWorkload& workload = row.task.workload;
    if (workload.fused() || workload.product || row.factors != DataType::kF32 || row.quantized) continue;
    if (!row.baseline) return 0;
    total += static_cast<double>(row.task.count) * row.baseline->seconds;
  }
  return total;
}

}  // namespace tilesmith
