#include "tools/tune/tuning_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/planner/work.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "layouts/measure/clock.h"
#include "tools/cli/conditions.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output_file.h"
#include "tools/cli/records.h"
#include "tools/onednn/onednn.h"
#include "tuner/records/record_key.h"
#include "tuner/records/shipped.h"
#include "tuner/search/searcher.h"

namespace tilesmith {
namespace {

constexpr int64_t kMaxTrials = 1'000'000;  // a task
constexpr double kBaselineSeconds = 0.1;   // for each task

// The database's warnings begin with its file's name or, of the system's errors, with what cannot be done.
std::string OfDatabase(const std::string& warning) {
  return (warning.starts_with("cannot ") ? "database: " : "database ") + warning;
}

}  // namespace

TuningTasks::TuningTasks(TuneModelRequest request, const WorkSinks& sinks)
    : request_(std::move(request)), sinks_(sinks), machine_(request_.machine) {
  RequireSearcher(request_.options.searcher);  // oneDNN would be timed before it is needed
  Targets& targets = request_.targets;
  if (is_network()) LeaveOutWhatRunsAsOps(targets.tasks);
  CheckSupported(targets.tasks);
  records_ = KnownRecords(request_.log_path, request_.existing_log, machine_->target());
  for (const Record& record : records_) history_->Add(record);
  for (const std::string& path : request_.history_paths) {
    for (const Record& record : LoadRecords(path)) history_->Add(record);
  }
  if (!request_.cost_model_path.empty()) history_->Start(LoadCostModel(request_.cost_model_path));
  OpenDatabase();
  AddExamples();
  log_.emplace(request_.log_path, request_.existing_log == ExistingLog::kOverwrite);
  network_is_cold_ = ColdWeights(request_.conditions, targets.tasks, is_network(), machine_->target());
  if (is_network() && request_.fusion) {
    std::ranges::move(FusedTasksOf(targets.graphs, machine_->target()), std::back_inserter(targets.tasks));
  }
  MakeRows(targets.tasks);
  LeaveOutWhatRunsAsOps(request_.quantized);
  for (const ConvTask& task : request_.quantized) {
    rows_.push_back(
        {.task = task, .cold_weights = IsCold(task), .baseline = {}, .result = {}, .quantized = true});
  }
  MeasureBaselines();
}

bool TuningTasks::IsCold(const ConvTask& task) const {
  return network_is_cold_ || ColdWeights(request_.conditions, task);
}

// Convolutions of a network that nothing else than the op's own kernel computes on this device are no tasks.
void TuningTasks::LeaveOutWhatRunsAsOps(std::vector<ConvTask>& tasks) const {
  std::erase_if(tasks, [&](const ConvTask& task) {
    return !NeedsRecord(task.workload) &&
           TemplatesToTune(task.workload, machine_->target(), request_.accuracy).empty();
  });
}

// Refuses them before minutes are spent on the others.
void TuningTasks::CheckSupported(const std::vector<ConvTask>& tasks) const {
  for (const ConvTask& task : tasks) {
    const std::string workload = WorkloadToString(task.workload);
    if (TemplatesToTune(task.workload, machine_->target()).empty())
      throw Error(ErrorCode::kNoCandidate, fmt::format("no template computes {}", workload));
    if (TemplatesToTune(task.workload, machine_->target(), request_.accuracy).empty())
      throw Error(ErrorCode::kNoCandidate,
                  fmt::format("{} leaves no template that computes {}", settings::kForbid, workload));
  }
}

// In f32 first, which rows of other types are alternatives to.
void TuningTasks::MakeRows(const std::vector<ConvTask>& tasks) {
  const auto templates = [&](const ConvTask& task, DataType factors) {
    return TemplatesToTune(task.workload, machine_->target(), request_.accuracy, factors);
  };
  std::vector<TuneRow> narrow;
  for (const ConvTask& task : tasks) {
    const bool asked = request_.precision == Precision::kBf16 || request_.precision == Precision::kMixed;
    const bool in_bf16 = asked && !templates(task, DataType::kBf16).empty();
    TuneRow row = {.task = task, .cold_weights = IsCold(task), .baseline = {}, .result = {}};
    if (!in_bf16 || request_.precision == Precision::kMixed) rows_.push_back(row);
    row.factors = DataType::kBf16;
    if (in_bf16) narrow.push_back(row);
  }
  std::ranges::move(narrow, std::back_inserter(rows_));
}

// Before tuning, since nothing else of ours may run while trials are measured. What there is no time for is
// left out.
void TuningTasks::MeasureBaselines() {
  constexpr double kShare = 0.2;
  if (request_.measure_elsewhere) return;
  const PinnedTeam team(machine_);
  WarnIfDisturbed(machine_, sinks_);
  if (!request_.baselines || machine_->target().device != kCpuDevice) return;  // oneDNN is the CPU's
  try {
    PrepareOneDnn(*machine_);
  } catch (const Error& error) {
    sinks_.Warn(error.what());
    return;
  }
  std::optional<BaselineCache> cache;
  std::error_code hidden;
  if (std::filesystem::is_regular_file(request_.log_path, hidden))
    cache.emplace(BaselineCache::PathFor(request_.log_path), machine_);
  std::vector<TuneRow*> missing, disturbed;
  for (TuneRow& row : rows_) {
    if (row.factors != DataType::kF32) continue;
    const KnownBaseline* known = cache ? cache->Find(row.task.workload, row.cold_weights) : nullptr;
    if (known == nullptr) {
      missing.push_back(&row);
      continue;
    }
    row.baseline = known->side;
    row.baseline_disturbed_share = known->disturbed_share;
    if (known->disturbed_share > 0) disturbed.push_back(&row);
  }
  missing.insert(missing.end(), disturbed.begin(), disturbed.end());
  const double began = NowSeconds(), end = request_.begin + kShare * request_.time_budget;
  for (size_t done = 0; done < missing.size() && !IsStopped(sinks_.stop) && NowSeconds() < end; ++done) {
    const double each = done > 0 ? (NowSeconds() - began) / static_cast<double>(done) : kBaselineSeconds;
    const double left =
        std::min(each * static_cast<double>(missing.size() - done), std::max(0.0, end - NowSeconds()));
    sinks_.Stage(fmt::format("oneDNN {}/{}, about {} left", done + 1, missing.size(), DurationText(left)));
    MeasureBaseline(*missing[done], cache);
  }
}

// A time that was taken while others used the machine is kept until there is another: one without them or,
// since they only add to it, a shorter one.
void TuningTasks::MeasureBaseline(TuneRow& row, std::optional<BaselineCache>& cache) {
  const DuelOptions duel{.seconds = kBaselineSeconds,
                         .cold = row.cold_weights,
                         .threads = machine_->threads(),
                         .stop = sinks_.stop};
  watch_.Skip();
  std::optional<OneDnnSide> fastest;
  const bool timed = UnlessInterrupted([&] {
    for (const OneDnnSide& side : TimeOneDnn(row.task.workload, duel)) {
      if (!fastest || side.seconds < fastest->seconds) fastest = side;
    }
  });
  const Disturbance meanwhile = watch_.EndInterval();
  const double share = fastest ? meanwhile.share() : 0;
  const bool known_is_shorter = row.baseline && fastest && row.baseline->seconds <= fastest->seconds;
  if (!timed || (share > 0 && known_is_shorter)) return;
  row.baseline = std::move(fastest);
  row.baseline_disturbed_share = share;
  if (cache) cache->Add(row.task.workload, row.cold_weights, {row.baseline, share});
}

// What was fast in other networks' convolutions: on this machine, and on others of the same ISA.
void TuningTasks::AddExamples() {
  const auto add = [this](const Record& record) {
    if (record.target.isa == machine_->target().isa) history_->AddExample(record);
  };
  if (database_) database_->ForEach(add);
  if (request_.suggest_shipped) std::ranges::for_each(ShippedRecords(), add);
}

void TuningTasks::OpenDatabase() {
  if (!request_.use_database) return;
  if (request_.database_path.empty()) {
    database_ = OpenDefaultDatabase(machine_->target());
  } else {
    if (std::filesystem::is_directory(request_.database_path))
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} is a directory, not a database", request_.database_path));
    RequireFormat(request_.database_path, OutputFormat::kLog);
    database_.emplace(request_.database_path);
  }
  if (database_) WarnOfDatabase(database_->warnings());
}

void TuningTasks::WarnOfDatabase(const std::vector<std::string>& warnings) {
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
  if (database_) WarnOfDatabase(database_->WarningsOfUseless());
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
  std::ranges::copy_if(records_, std::back_inserter(request.resume),
                       [&](const Record& record) { return record.workload == workload; });
  request.suggestions = UntunedSchedules(workload);
  if (request_.suggest_shipped) {
    std::ranges::move(Suggestions(ShippedRecords(), workload, machine_->target(), machine_->threads()),
                      std::back_inserter(request.suggestions));
  }
  request.history = history_;
  if (database_ && row.factors == DataType::kF32) TakeFromDatabase(row, task);
  return task;
}

// Into the log too, where the graph tuner looks for it.
void TuningTasks::TakeFromDatabase(TuneRow& row, NetworkTask& task) {
  TuneRequest& request = task.request;
  const KnownTask known = FindKnown(*database_, request, WantedTrials());
  row.known = task.known = known.enough;
  std::set<std::string> logged;
  for (const Record& record : request.resume) logged.insert(RecordKey(record).ToString());
  for (const Record& record : known.records) {
    history_->Add(record);
    if (!logged.insert(RecordKey(record).ToString()).second) continue;
    unlogged_.push_back(record);
    request.resume.push_back(record);
    records_.push_back(record);
  }
}

void TuningTasks::LogKnown() {
  for (const Record& record : unlogged_) log_->Append(record);
  unlogged_.clear();
}

void TuningTasks::Log(const Record& record) {
  const int lost = log_->times_lost();
  LogKnown();
  log_->Append(record);
  if (log_->times_lost() == lost) return;
  sinks_.Warn(fmt::format("{} was removed or replaced; goes on in a new file", log_->path()));
}

void TuningTasks::Finish(NetworkResult result) {
  for (size_t i = 0; i < rows_.size(); ++i) rows_[i].result = std::move(result.tasks[i]);
  if (IsStopped(sinks_.stop)) return;
  LogKnown();
  if (database_) Remember();
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
  if (!database_->Add(records, given)) sinks_.Warn(OfDatabase(database_->warnings().back()));
}

std::optional<TuningDatabase> OpenDefaultDatabase(const Target& target) {
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  std::string folder;
  if (data != nullptr && data[0] == '/') {  // the specification wants relative ones ignored
    folder = data;
  } else if (home != nullptr && *home != '\0') {
    folder = std::string(home) + "/.local/share";
  } else {
    return std::nullopt;
  }
  folder += "/tilesmith/";
  return TuningDatabase(folder + DatabaseFileName(target), folder + FormerDatabaseFileName(target));
}

std::string MachineCostsPath(const std::string& database_path) {
  const std::filesystem::path path = CostsPathFor(database_path);
  std::error_code ignored;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  return std::ofstream(path, std::ios::app) ? path.string() : "";
}

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

}  // namespace tilesmith
