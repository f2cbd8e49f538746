#include "graph_tuner/planner/tuning_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "graph_tuner/executor/heuristic_plan.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "tuner/first_builds.h"
#include "tuner/records/record_key.h"
#include "tuner/records/shipped.h"
#include "tuner/search/searcher.h"

namespace tilesmith {
namespace {

constexpr int64_t kMaxTrials = 1'000'000;  // a task

// The database's warnings begin with its file's name or, of the system's errors, with what cannot be done.
std::string OfDatabase(const std::string& warning) {
  return (warning.starts_with("cannot ") ? "database: " : "database ") + warning;
}

std::vector<const ConvTemplate*> TemplatesOf(const TuningEffort& effort, const ConvTask& task,
                                             DataType factors = DataType::kF32) {
  return TemplatesToTune(task.workload, effort.machine->target(), effort.accuracy, factors);
}

void LeaveOutWhatRunsAsOps(const TuningEffort& effort, std::vector<ConvTask>& tasks) {
  std::erase_if(tasks, [&](const ConvTask& task) {
    return !NeedsRecord(task.workload) && TemplatesOf(effort, task).empty();
  });
}

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

struct KnownTask {
  std::vector<Record> records;  // within the limits
  bool enough = false;          // its task was given at least the trials wanted
};

// Enough are so many trials, when one of the request's templates came out of them with a full measurement.
KnownTask FindKnown(TuningDatabase& database, const TuneRequest& request, int wanted_trials) {
  const auto is_result = [&](const Record& record) {
    return record.status == TrialStatus::kOk && !record.early_stopped &&
           std::ranges::find(request.templates, record.template_name, &ConvTemplate::Name) !=
               request.templates.end();
  };
  KnownTask known;
  known.records =
      AcceptedRecords(request.accuracy, database.Find(request.workload, request.cpu, request.conditions));
  known.enough =
      std::ranges::any_of(known.records, is_result) && TrialsBehind(known.records) >= wanted_trials;
  return known;
}

// What a gain in each task is worth. Of a network: how often it contains the task. Otherwise every task
// counts alike, whatever its size: the inverse of the baseline's time, or of the work where there is none.
std::vector<double> WeightsOf(std::span<const TuneRow> rows, bool is_network) {
  constexpr double kFlopsPerSecond = 1e11;
  std::vector<double> weights;
  for (const TuneRow& row : rows) {
    const double seconds = row.baseline_seconds.value_or(row.task.workload.flops() / kFlopsPerSecond);
    weights.push_back(is_network ? static_cast<double>(row.task.count) : 1 / seconds);
  }
  return weights;
}

}  // namespace

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

double BaselineSeconds(std::span<const TuneRow> rows) {
  double total = 0;
  for (const TuneRow& row : rows) {
    const ConvWorkload& workload = row.task.workload;
    if (workload.fused() || workload.product || row.factors != DataType::kF32 || row.quantized) continue;
    if (!row.baseline_seconds) return 0;
    total += static_cast<double>(row.task.count) * *row.baseline_seconds;
  }
  return total;
}

void CheckTuning(TuningRequest* request) {
  RequireSearcher(request->options.searcher);
  if (!request->graphs.empty()) LeaveOutWhatRunsAsOps(*request, request->tasks);
  for (const ConvTask& task : request->tasks) {
    const std::string workload = WorkloadToString(task.workload);
    if (TemplatesToTune(task.workload, request->machine->target()).empty())
      throw Error(ErrorCode::kNoCandidate, fmt::format("no template computes {}", workload));
    if (TemplatesOf(*request, task).empty())
      throw Error(ErrorCode::kNoCandidate,
                  fmt::format("{} leaves no template that computes {}", settings::kForbid, workload));
  }
}

TuningTasks::TuningTasks(TuningRequest request, const WorkSinks& sinks)
    : request_(std::move(request)), sinks_(sinks), machine_(request_.machine) {
  if (request_.database != nullptr) WarnOfDatabase(request_.database->warnings());
  AddExamples();
  std::vector<ConvTask>& tasks = request_.tasks;
  network_is_cold_ = ColdWeights(request_.conditions, tasks, is_network(), machine_->target());
  if (is_network() && request_.fusion)
    std::ranges::move(FusedTasksOf(graphs(), machine_->target()), std::back_inserter(tasks));
  MakeRows(tasks);
  LeaveOutWhatRunsAsOps(request_, request_.quantized);
  for (const ConvTask& task : request_.quantized)
    rows_.push_back({.task = task, .cold_weights = IsCold(task), .quantized = true});
  if (request_.time_baselines) request_.time_baselines(rows_, watch_);
}

bool TuningTasks::IsCold(const ConvTask& task) const {
  return network_is_cold_ || ColdWeights(request_.conditions, task);
}

// In f32 first, which rows of other types are alternatives to.
void TuningTasks::MakeRows(const std::vector<ConvTask>& tasks) {
  std::vector<TuneRow> narrow;
  for (const ConvTask& task : tasks) {
    const bool asked = request_.precision == Precision::kBf16 || request_.precision == Precision::kMixed;
    const bool in_bf16 = asked && !TemplatesOf(request_, task, DataType::kBf16).empty();
    TuneRow row = {.task = task, .cold_weights = IsCold(task)};
    if (!in_bf16 || request_.precision == Precision::kMixed) rows_.push_back(row);
    row.factors = DataType::kBf16;
    if (in_bf16) narrow.push_back(row);
  }
  std::ranges::move(narrow, std::back_inserter(rows_));
}

// What was fast in other networks' convolutions: on this machine, and on others of the same ISA.
void TuningTasks::AddExamples() {
  const auto add = [this](const Record& record) {
    if (record.target.isa == machine_->target().isa) request_.history->AddExample(record);
  };
  if (request_.database != nullptr) request_.database->ForEach(add);
  if (request_.suggest_shipped) std::ranges::for_each(ShippedRecords(), add);
}

void TuningTasks::WarnOfDatabase(const std::vector<std::string>& warnings) const {
  for (const std::string& warning : warnings) sinks_.Warn(OfDatabase(warning));
}

// What a task must have been given to be known: what this run would give it.
int TuningTasks::WantedTrials() const {
  constexpr int kWithoutCounting = 64;
  return counted() ? PlannedTrials() : kWithoutCounting;
}

bool TuningTasks::counted() const { return request_.trials > 0 || !std::isfinite(request_.time_budget); }

// A time budget without a number of trials is not limited by any.
int TuningTasks::PlannedTrials() const {
  if (request_.trials > 0) return static_cast<int>(std::min<int64_t>(request_.trials, kMaxTrials));
  return std::isfinite(request_.time_budget) ? 0 : NetworkTuneOptions().trials;
}

std::vector<NetworkTask> TuningTasks::Make() {
  const std::vector<double> weights = WeightsOf(rows_, is_network());
  std::vector<NetworkTask> tasks;
  if (machine_->target().device == kCpuDevice)
    for (const Graph& graph : graphs())
      untuned_.push_back(HeuristicPlan(graph, machine_->target(), machine_->threads()));
  for (size_t i = 0; i < rows_.size(); ++i) {
    tasks.push_back(MakeTask(rows_[i]));
    tasks.back().weight = weights[i];
  }
  if (request_.database != nullptr) WarnOfDatabase(request_.database->WarningsOfUseless());
  LinkAlternatives(rows_, tasks);
  return tasks;
}

// What the plans without tuning have: measured first, so that the graph tuner knows what they cost.
std::vector<Record> TuningTasks::UntunedSchedules(const ConvWorkload& workload) const {
  std::vector<Record> records;
  for (const Plan& plan : untuned_) {
    for (const NodePlan& node : plan.nodes)
      if (node.record && node.record->workload == workload) records.push_back(*node.record);
  }
  return records;
}

NetworkTask TuningTasks::MakeTask(TuneRow& row) {
  const ConvWorkload& workload = row.task.workload;
  NetworkTask task;
  TuneRequest& request = task.request;
  request.workload = workload;
  request.cpu = machine_->target();
  request.accuracy = request_.accuracy;
  for (const std::string& name : row.task.forbidden_templates) {
    request.accuracy.forbidden_templates.push_back(name);
  }
  request.templates = TemplatesToTune(workload, machine_->target(), request.accuracy, row.factors);
  request.conditions = {machine_->threads(), true, row.cold_weights};
  request.options = request_.options;
  request.options.seed = request_.seed;
  std::ranges::copy_if(request_.records, std::back_inserter(request.resume),
                       [&](const Record& record) { return record.workload == workload; });
  request.suggestions = UntunedSchedules(workload);
  if (request_.suggest_shipped) {
    std::ranges::move(Suggestions(ShippedRecords(), workload, machine_->target(), machine_->threads()),
                      std::back_inserter(request.suggestions));
  }
  request.history = request_.history;
  if (request_.database != nullptr && row.factors == DataType::kF32) TakeFromDatabase(row, task);
  return task;
}

// Into the log too, where the graph tuner looks for it.
void TuningTasks::TakeFromDatabase(TuneRow& row, NetworkTask& task) {
  TuneRequest& request = task.request;
  const KnownTask known = FindKnown(*request_.database, request, WantedTrials());
  row.known = task.known = known.enough;
  std::set<std::string> logged;
  for (const Record& record : request.resume) logged.insert(RecordKey(record).ToString());
  for (const Record& record : known.records) {
    request_.history->Add(record);
    if (!logged.insert(RecordKey(record).ToString()).second) continue;
    unlogged_.push_back(record);
    request.resume.push_back(record);
    request_.records.push_back(record);
  }
}

void TuningTasks::LogKnown() {
  for (const Record& record : unlogged_) request_.log(record);
  unlogged_.clear();
}

void TuningTasks::Log(const Record& record) {
  LogKnown();
  request_.log(record);
}

void TuningTasks::Finish(NetworkResult result) {
  for (size_t i = 0; i < rows_.size(); ++i) rows_[i].result = std::move(result.tasks[i]);
  if (IsStopped(sinks_.stop)) return;
  LogKnown();
  if (request_.database != nullptr) Remember();
}

void TuningTasks::Remember() {
  int64_t trials = 0, tuned = 0;
  for (const TuneRow& row : rows_) {
    if (row.known || row.factors != DataType::kF32) continue;
    trials += static_cast<int64_t>(row.result.records.size());
    ++tuned;
  }
  if (tuned == 0) return;
  const int given = counted() ? PlannedTrials() : static_cast<int>(trials / tuned);
  std::vector<Record> records;
  for (const TuneRow& row : rows_) {
    if (row.known || row.factors != DataType::kF32) continue;
    std::ranges::copy(row.result.records, std::back_inserter(records));
  }
  if (!request_.database->Add(records, given)) sinks_.Warn(OfDatabase(request_.database->warnings().back()));
}

TunedTasks TuneTasks(TuningRequest request, ProcessMeasurer& here, Measurer* elsewhere,
                     const WorkSinks& sinks, const ShowTuning& on_progress) {
  const double begin = request.begin, time_budget = request.time_budget;
  const DevicePtr machine = request.machine;
  NetworkTuneOptions options;
  options.seed = request.seed;
  TuningTasks tuning(std::move(request), sinks);
  const std::vector<NetworkTask> tasks = tuning.Make();
  std::optional<FirstBuilds> first_builds;
  if (elsewhere == nullptr) first_builds.emplace(machine, tasks);
  options.trials = tuning.PlannedTrials();
  if (!tuning.is_network()) options.most_share = 1;
  options.seconds_budget = std::max(0.0, time_budget - (NowSeconds() - begin));
  options.stop_when_flat = tuning.is_network();
  NetworkSinks network_sinks;
  network_sinks.on_record = [&](const Record& record) { tuning.Log(record); };
  network_sinks.on_progress = [&](NetworkProgress at) {
    if (!tuning.is_network()) at.network_seconds = 0;
    if (elsewhere == nullptr)
      tuning.rows()[at.task].disturbance += tuning.watch().EndInterval(here.worker_pid());
    if (on_progress) on_progress(tuning.rows(), at);
  };
  network_sinks.should_stop = [&] { return IsStopped(sinks.stop); };
  tuning.watch().Skip();
  Measurer& measurer = elsewhere != nullptr ? *elsewhere : here;
  NetworkResult result = TuneNetwork(tasks, options, measurer, network_sinks);
  TunedTasks tuned;
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
