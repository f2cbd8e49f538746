#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "layouts/measure/clock.h"
#include "tools/bench/conv_bench.h"
#include "tools/cli/accuracy.h"
#include "tools/cli/conditions.h"
#include "tools/cli/dump_code.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/model.h"
#include "tools/cli/records.h"
#include "tools/cli/report.h"
#include "tools/cli/targets.h"
#include "tools/commands/commands.h"
#include "tools/tune/tune_report.h"
#include "tools/tune/tune_view.h"
#include "tools/tune/user_database.h"
#include "tuner/cost_model/training_history.h"
#include "tuner/measure/process_measurer.h"
#include "tuner/records/log.h"
#include "tuner/records/record_key.h"
#include "tuner/search/searcher.h"

namespace tilesmith {
namespace {

bool HasContents(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && status.st_size > 0;
}

class TuneCommand : public Command {
 public:
  std::string_view Name() const override { return "tune"; }
  std::string_view Purpose() const override {
    return "Search for the fastest schedule of each convolution by measuring";
  }
  std::string_view Examples() const override {
    return "tilesmith tune resnet50 -o resnet50.jsonl --time-budget 8m\n"
           "tilesmith tune ic256ih14oc256oh14kh3ph1+bias+relu -o conv.jsonl --trials 500 --tuner random\n"
           "tilesmith tune model.onnx -o model.jsonl --resume";
  }

  void Declare(Args& args) override {
    DeclareTargets(args, &target_);
    args.Text("-o,--output", &log_path_, "Tuning log to write (JSON lines, appended to)");
    args.Positive(
        "--trials", &trials_,
        fmt::format("Configs to try per task; of a network on average, spent where they help most and "
                    "left out where none would (default {}; with --time-budget, as many as fit)",
                    NetworkTuneOptions().trials));
    args.Duration("--time-budget", &time_budget_, "For all tasks together, such as 90s, 8m, 1h30m");
    std::vector<std::string> tuners;
    for (const SearcherInfo& info : Searchers()) tuners.emplace_back(info.name);
    args.Choice("--tuner", &options_.searcher, tuners,
                fmt::format("Search strategy (default {})", options_.searcher));
    args.Texts("--history", &history_paths_, "Log of other tasks to learn from beforehand; may be repeated");
    args.Text("--cost-model", &cost_model_path_,
              "Start from this model (see cost-model) instead of training one");
    args.NonNegative("--seed", &seed_, "Of the search and of the data (default 1)");
    args.Flag("--resume", &resume_, "Go on with an existing log: what it holds is not measured again");
    args.Flag("--overwrite", &overwrite_, "Start an existing log afresh");
    args.Text("--db", &database_path_,
              "Database of what earlier tunings found; tasks it knows from as many trials cost nothing "
              "(default: in $XDG_DATA_HOME/tilesmith)");
    args.Flag("--no-db", &no_database_, "Neither ask nor tell the database");
    args.Flag("--no-fusion", &no_fusion_, "Of a MODEL, leave out the fused alternatives to pairs of layers");
    DeclareAccuracy(args, &accuracy_);
    DeclareConditions(args, &conditions_name_);
    DeclareMachineOptions(args, &machine_options_);
    args.Text("--dump-code", &dump_directory_, "Write the machine code of each task's best config here");
    args.Flag("--json", &json_, "Print the final table as JSON");
  }

  int Run() override {
    if (log_path_.empty()) throw Error(ErrorCode::kUsage, "-o LOG is required");
    if (resume_ && overwrite_) throw Error(ErrorCode::kUsage, "--resume and --overwrite exclude each other");
    if (no_database_ && !database_path_.empty()) {
      throw Error(ErrorCode::kUsage, "--no-db and --db exclude each other");
    }
    CheckAccuracyLimits(accuracy_);
    RequireWritableDirectory(dump_directory_);
    begin_ = NowSeconds();
    machine_ = OpenMachine(machine_options_);
    Targets targets = LoadTargets(target_);
    CheckSupported(targets.tasks);
    records_ = OpenLog();
    for (const Record& record : records_) history_->Add(record);
    for (const std::string& path : history_paths_) {
      for (const Record& record : LoadRecords(path)) history_->Add(record);
    }
    if (!cost_model_path_.empty()) history_->Start(LoadCostModel(cost_model_path_));
    LogWriter log(log_path_);
    is_network_ = targets.is_network();
    network_is_cold_ = ColdWeights(conditions_name_, targets.tasks, is_network_, machine_.cpu);
    if (is_network_ && !no_fusion_) {
      std::ranges::move(FusedTasksOf(*targets.graph, machine_.cpu), std::back_inserter(targets.tasks));
    }
    CatchInterrupts();
    MeasureBaselines(targets.tasks);
    OpenDatabase();
    Tune(log);
    return Finish();
  }

 private:
  std::vector<Record> OpenLog() {
    if (overwrite_) WriteTextFile(log_path_, "");
    if (!HasContents(log_path_)) return {};
    if (!resume_) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} exists: give --resume to go on with it, or --overwrite to start afresh",
                              log_path_));
    }
    return LoadUsableRecords(log_path_, machine_.cpu);
  }

  bool IsCold(const ConvTask& task) const { return network_is_cold_ || ColdWeights(conditions_name_, task); }

  // Before minutes are spent on the others.
  void CheckSupported(const std::vector<ConvTask>& tasks) const {
    for (const ConvTask& task : tasks) {
      if (!TemplatesToTune(task.workload, machine_.cpu).empty()) continue;
      throw Error(ErrorCode::kNoCandidate,
                  fmt::format("no template computes {}", WorkloadToString(task.workload)));
    }
  }

  // Before tuning, since nothing else of ours may run while trials are measured.
  void MeasureBaselines(const std::vector<ConvTask>& tasks) {
    constexpr double kSecondsPerTask = 0.1;
    const PinnedTeam team(machine_);
    for (const ConvTask& task : tasks) {
      if (Interrupted()) break;
      view_.ShowLine(fmt::format("oneDNN {}/{}", rows_.size() + 1, tasks.size()));
      std::optional<OneDnnSide> fastest;
      const DuelOptions duel{.seconds = kSecondsPerTask,
                             .cold = IsCold(task),
                             .threads = machine_.threads,
                             .stop = &InterruptFlag()};
      const bool timed = UnlessInterrupted([&] {
        for (const OneDnnSide& side : TimeOneDnn(task.workload, duel)) {
          if (!fastest || side.seconds < fastest->seconds) fastest = side;
        }
      });
      if (timed) rows_.push_back({task, IsCold(task), fastest, false, {}});
    }
  }

  void OpenDatabase() {
    if (no_database_) return;
    if (database_path_.empty()) {
      database_ = OpenDefaultDatabase(TargetOf(machine_.cpu));
    } else {
      database_.emplace(database_path_);
    }
    if (database_) WarnOfDatabase(database_->warnings());
  }

  void WarnOfDatabase(const std::vector<std::string>& warnings) {
    for (const std::string& warning : warnings) view_.Say("warning: database " + warning);
  }

  // What a task must have been given to be known: what this run would give it.
  int WantedTrials() const {
    constexpr int kWithoutCounting = 64;
    return counted() ? PlannedTrials() : kWithoutCounting;
  }
  bool counted() const { return trials_ > 0 || !std::isfinite(time_budget_); }
  // A time budget without a number of trials is not limited by any.
  int PlannedTrials() const {
    if (trials_ > 0) return int(std::min<int64_t>(trials_, kMostTrials));
    return std::isfinite(time_budget_) ? 0 : NetworkTuneOptions().trials;
  }

  NetworkTask MakeTask(TuneRow& row, LogWriter& log) {
    const ConvWorkload& workload = row.task.workload;
    NetworkTask task;
    TuneRequest& request = task.request;
    request.workload = workload;
    request.cpu = machine_.cpu;
    request.accuracy = accuracy_;
    for (const std::string& name : row.task.forbidden_templates) {
      request.accuracy.forbidden_templates.push_back(name);
    }
    request.templates = TemplatesToTune(workload, machine_.cpu, request.accuracy);
    request.conditions = {machine_.threads, true, row.cold_weights};
    request.options = options_;
    request.options.seed = uint64_t(seed_);
    std::ranges::copy_if(records_, std::back_inserter(request.resume),
                         [&](const Record& record) { return record.workload == workload; });
    request.history = history_;
    if (database_) TakeFromDatabase(row, task, log);
    return task;
  }

  // Into the log too, where the graph tuner looks for it.
  void TakeFromDatabase(TuneRow& row, NetworkTask& task, LogWriter& log) {
    TuneRequest& request = task.request;
    const KnownTask known = FindKnown(*database_, request, WantedTrials());
    row.known = task.known = known.enough;
    std::set<std::string> logged;
    for (const Record& record : request.resume) logged.insert(RecordKey(record).ToString());
    for (const Record& record : known.records) {
      history_->Add(record);
      if (!logged.insert(RecordKey(record).ToString()).second) continue;
      log.Append(record);
      request.resume.push_back(record);
    }
  }

  void Tune(LogWriter& log) {
    ProcessMeasurer measurer({"/proc/self/exe", "measure-worker"});
    const std::vector<double> weights = WeightsOf(rows_, is_network_);
    std::vector<NetworkTask> tasks;
    for (size_t i = 0; i < rows_.size(); ++i) {
      tasks.push_back(MakeTask(rows_[i], log));
      tasks.back().weight = weights[i];
    }
    if (database_) WarnOfDatabase(database_->WarningsOfUseless());
    LinkAlternatives(rows_, tasks);
    NetworkTuneOptions options;
    options.trials = PlannedTrials();
    if (!is_network_) options.most_share = 1;
    options.seconds_budget = std::max(0.0, time_budget_ - (NowSeconds() - begin_));
    options.stop_when_flat = is_network_;
    options.seed = uint64_t(seed_);
    NetworkSinks sinks;
    sinks.on_record = [&](const Record& record) { Log(log, record); };
    sinks.on_progress = [&](NetworkProgress at) {
      if (!is_network_) at.network_seconds = 0;
      view_.Show(rows_, at);
    };
    sinks.should_stop = Interrupted;
    NetworkResult result = TuneNetwork(tasks, options, measurer, sinks);
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i].result = std::move(result.tasks[i]);
    if (is_network_) network_seconds_ = result.network_seconds;
    if (database_ && !Interrupted()) Remember();
    view_.Clear();
  }

  void Log(LogWriter& log, const Record& record) {
    const int lost = log.times_lost();
    log.Append(record);
    if (log.times_lost() == lost) return;
    view_.Say(fmt::format("warning: {} was removed or replaced; goes on in a new file", log.path()));
  }

  void Remember() {
    int64_t trials = 0, tuned = 0;
    for (const TuneRow& row : rows_) {
      if (row.known) continue;
      trials += int64_t(row.result.records.size());
      ++tuned;
    }
    if (tuned == 0) return;
    const int given = counted() ? PlannedTrials() : int(trials / tuned);
    std::vector<Record> records;
    for (const TuneRow& row : rows_) {
      if (!row.known) std::ranges::copy(row.result.records, std::back_inserter(records));
    }
    if (!database_->Add(records, given)) view_.Say("warning: database " + database_->warnings().back());
  }

  int Finish() {
    Report report;
    report.Fact("threads", "threads", CountCell(machine_.threads));
    AddTuningTable(report, rows_);
    AddNetworkTotal(report, rows_, network_seconds_);
    report.Fact("log", "log", TextCell(log_path_));
    if (database_) report.Fact("database", "database", TextCell(database_->path()));
    report.Fact("elapsed_seconds", "elapsed", {NowSeconds() - begin_, DurationText(NowSeconds() - begin_)});
    report.Print(json_);
    DumpCode();
    if (Interrupted()) {
      throw Error(ErrorCode::kInterrupted,
                  fmt::format("interrupted; what was measured is in {}, --resume goes on", log_path_));
    }
    for (const TuneRow& row : rows_) {
      if (row.result.best) continue;
      throw Error(ErrorCode::kNoCandidate,
                  fmt::format("no config of {} worked in {} trials", WorkloadToString(row.task.workload),
                              row.result.trials_measured));
    }
    return 0;
  }

  void DumpCode() const {
    if (dump_directory_.empty()) return;
    for (const TuneRow& row : rows_) {
      const std::optional<Record>& best = row.result.best;
      if (best) {
        DumpConv(row.task.workload, best->template_name, best->config, machine_.cpu, dump_directory_);
      }
    }
  }

  static constexpr int64_t kMostTrials = 1'000'000;  // a task

  TargetOptions target_;
  MachineOptions machine_options_;
  TuneOptions options_;
  AccuracyLimits accuracy_;
  int64_t trials_ = 0;  // 0: not given
  int64_t seed_ = 1;
  double time_budget_ = std::numeric_limits<double>::infinity();
  bool resume_ = false, overwrite_ = false, no_fusion_ = false, json_ = false, no_database_ = false;
  std::string log_path_, dump_directory_, conditions_name_ = "auto", database_path_;

  double begin_ = 0;
  Machine machine_;
  bool is_network_ = false, network_is_cold_ = false;
  double network_seconds_ = 0;
  std::vector<Record> records_;  // of the log, before
  std::vector<std::string> history_paths_;
  std::string cost_model_path_;
  const std::shared_ptr<TrainingHistory> history_ = std::make_shared<TrainingHistory>();
  std::optional<TuningDatabase> database_;
  TuneView view_;
  std::vector<TuneRow> rows_;
};

}  // namespace

std::unique_ptr<Command> MakeTuneCommand() { return std::make_unique<TuneCommand>(); }

}  // namespace tilesmith
