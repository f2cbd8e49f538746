#include "tools/commands/tune.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "tools/bench/conv_bench.h"
#include "tools/cli/accuracy.h"
#include "tools/cli/conditions.h"
#include "tools/cli/dump_code.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/model.h"
#include "tools/cli/progress.h"
#include "tools/cli/records.h"
#include "tools/cli/report.h"
#include "tools/cli/targets.h"
#include "tools/cli/time_share.h"
#include "tuner/log.h"
#include "tuner/measure/process_measurer.h"
#include "tuner/search/searcher.h"
#include "tuner/tune.h"

namespace tilesmith {
namespace {

bool HasContents(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && status.st_size > 0;
}

struct TaskOutcome {
  ConvTask task;
  std::optional<OneDnnSide> baseline;
  TuneResult result;
};

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
    args.Positive("--trials", &trials_,
                  fmt::format("Configs to try per task (default {}; with --time-budget, as many as fit)",
                              TuneOptions().trials));
    args.Duration("--time-budget", &time_budget_, "For all tasks together, such as 90s, 8m, 1h30m");
    std::vector<std::string> tuners;
    for (const SearcherInfo& info : Searchers()) tuners.emplace_back(info.name);
    args.Choice("--tuner", &options_.searcher, tuners,
                fmt::format("Search strategy (default {})", options_.searcher));
    args.NonNegative("--seed", &seed_, "Of the search and of the data (default 1)");
    args.Flag("--resume", &resume_, "Go on with an existing log: what it holds is not measured again");
    args.Flag("--overwrite", &overwrite_, "Start an existing log afresh");
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
    CheckAccuracyLimits(accuracy_);
    begin_ = NowSeconds();
    machine_ = OpenMachine(machine_options_);
    Targets targets = LoadTargets(target_);
    CheckSupported(targets.tasks);
    std::vector<Record> known = OpenLog();
    LogWriter log(log_path_);
    network_is_cold_ = ColdWeights(conditions_name_, targets.tasks, targets.is_network(), machine_.cpu);
    if (targets.is_network() && !no_fusion_) {
      std::ranges::move(FusedTasksOf(*targets.graph, machine_.cpu), std::back_inserter(targets.tasks));
    }
    CatchInterrupts();
    MeasureBaselines(targets.tasks);
    Tune(std::move(known), log);
    return Finish();
  }

 private:
  std::vector<Record> OpenLog() {
    if (!HasContents(log_path_) || overwrite_) {
      WriteTextFile(log_path_, "");
      return {};
    }
    if (!resume_) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} exists: give --resume to go on with it, or --overwrite to start afresh",
                              log_path_));
    }
    return LoadRecords(log_path_);
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
      progress_.Show(fmt::format("oneDNN {}/{}", outcomes_.size() + 1, tasks.size()));
      std::optional<OneDnnSide> fastest;
      for (const OneDnnSide& side : TimeOneDnn(task.workload, {kSecondsPerTask, IsCold(task)})) {
        if (!fastest || side.seconds < fastest->seconds) fastest = side;
      }
      outcomes_.push_back({task, fastest, {}});
    }
  }

  void Tune(std::vector<Record> known, LogWriter& log) {
    ProcessMeasurer measurer({"/proc/self/exe", "measure-worker"});
    std::vector<double> weights;
    for (const TaskOutcome& outcome : outcomes_) {
      weights.push_back(double(outcome.task.count) * outcome.task.workload.flops());
    }
    for (size_t i = 0; i < outcomes_.size() && !Interrupted(); ++i) {
      TaskOutcome& outcome = outcomes_[i];
      const ConvWorkload& workload = outcome.task.workload;
      TuneRequest request;
      request.workload = workload;
      request.cpu = machine_.cpu;
      request.accuracy = accuracy_;
      for (const std::string& name : outcome.task.forbidden_templates) {
        request.accuracy.forbidden_templates.push_back(name);
      }
      request.templates = TemplatesToTune(workload, machine_.cpu, request.accuracy);
      request.conditions = {machine_.threads, true, IsCold(outcome.task)};
      request.options = options_;
      request.options.trials = PlannedTrials();
      request.options.seed = uint64_t(seed_);
      if (std::isfinite(time_budget_)) {
        const double left = time_budget_ - (NowSeconds() - begin_);
        request.options.seconds_budget = TimeShare(left, std::span(weights).subspan(i));
      }
      request.resume = known;
      TuneSinks sinks;
      sinks.on_record = [&](const Record& record) { log.Append(record); };
      sinks.on_progress = [&](const TuneProgress& at) { progress_.Show(ProgressText(i, at)); };
      sinks.should_stop = Interrupted;
      outcome.result = TuneTask(request, measurer, sinks);
    }
    progress_.Clear();
  }

  // A time budget without a number of trials is spent whole.
  int PlannedTrials() const {
    if (trials_ > 0) return int(trials_);
    return std::isfinite(time_budget_) ? kAsManyAsFit : TuneOptions().trials;
  }

  std::string ProgressText(size_t task, const TuneProgress& at) const {
    const TaskOutcome& outcome = outcomes_[task];
    std::string best = "nothing yet";
    if (at.best_seconds > 0) {
      best = fmt::format("{:.1f} GFLOP/s", at.best_gflops);
      if (outcome.baseline)
        best += fmt::format(" ({:.2f}x oneDNN)", outcome.baseline->seconds / at.best_seconds);
    }
    int failures = 0;
    for (const auto& [status, count] : at.failures) failures += count;
    const double elapsed = NowSeconds() - begin_;
    const double left = std::isfinite(time_budget_) && outcomes_.size() > 1
                            ? std::max(time_budget_ - elapsed, 0.0)
                            : at.left_seconds;
    const std::string planned =
        at.trials_planned == kAsManyAsFit ? " trials" : fmt::format("/{}", at.trials_planned);
    return fmt::format("[{}/{}] {} {}{}  best {}  failed {}  left {}  {}", task + 1, outcomes_.size(),
                       TunePhaseName(at.phase), at.trials_done, planned, best, failures, DurationText(left),
                       WorkloadToString(outcome.task.workload));
  }

  int Finish() {
    Report report;
    report.Fact("threads", "threads", CountCell(machine_.threads));
    FillTable(report.AddTable({"tasks",
                               "",
                               {{"workload", "workload"},
                                {"fused", "fused"},
                                {"count", "count"},
                                {"best_seconds", "best ms"},
                                {"gflops", "GFLOP/s"},
                                {"template", "template"},
                                {"layouts", "layouts"},
                                {"weights", "weights"},
                                {"onednn_seconds", "oneDNN ms"},
                                {"ratio", "ratio"},
                                {"trials", "trials"},
                                {"failures", "failed"},
                                {"trials_per_second", "trials/s"}}}));
    report.Fact("log", "log", TextCell(log_path_));
    report.Fact("elapsed_seconds", "elapsed", {NowSeconds() - begin_, DurationText(NowSeconds() - begin_)});
    report.Print(json_);
    if (Interrupted()) {
      throw Error(ErrorCode::kInterrupted,
                  fmt::format("interrupted; what was measured is in {}, --resume goes on", log_path_));
    }
    for (const TaskOutcome& outcome : outcomes_) {
      if (outcome.result.best) continue;
      throw Error(ErrorCode::kNoCandidate,
                  fmt::format("no config of {} worked in {} trials", WorkloadToString(outcome.task.workload),
                              outcome.result.trials_measured));
    }
    return 0;
  }

  void FillTable(Table& table) const {
    for (const TaskOutcome& outcome : outcomes_) {
      const TuneResult& result = outcome.result;
      const auto& baseline = outcome.baseline;
      int failures = 0;
      for (const auto& [status, count] : result.failures) failures += count;
      const double seconds = result.best ? result.best->seconds : 0;
      table.AddRow({
          TextCell(WorkloadToString(outcome.task.workload)),
          TextCell(FusionText(outcome.task.workload)),
          CountCell(outcome.task.count),
          result.best ? MillisecondsCell(seconds) : NoCell(),
          result.best ? RealCell(outcome.task.workload.flops() / seconds * 1e-9, 1) : NoCell(),
          result.best ? TextCell(result.best->template_name) : NoCell(),
          result.best ? TextCell(LayoutsText(result.best->layouts)) : NoCell(),
          TextCell(IsCold(outcome.task) ? "cold" : "warm"),
          baseline ? MillisecondsCell(baseline->seconds) : NoCell(),
          baseline && result.best ? RatioCell(baseline->seconds / seconds) : NoCell(),
          CountCell(result.trials_measured),
          CountCell(failures),
          result.search_seconds > 0 ? RealCell(result.trials_measured / result.search_seconds, 0) : NoCell(),
      });
      if (result.best && !dump_directory_.empty()) {
        DumpConv(outcome.task.workload, result.best->template_name, result.best->config, machine_.cpu,
                 dump_directory_);
      }
    }
  }

  static constexpr int kAsManyAsFit = 1'000'000;

  TargetOptions target_;
  MachineOptions machine_options_;
  TuneOptions options_;
  AccuracyLimits accuracy_;
  int64_t trials_ = 0;  // 0: not given
  int64_t seed_ = 1;
  double time_budget_ = std::numeric_limits<double>::infinity();
  bool resume_ = false, overwrite_ = false, no_fusion_ = false, json_ = false;
  std::string log_path_, dump_directory_, conditions_name_ = "auto";

  double begin_ = 0;
  Machine machine_;
  bool network_is_cold_ = false;
  ProgressLine progress_;
  std::vector<TaskOutcome> outcomes_;
};

}  // namespace

std::unique_ptr<Command> MakeTuneCommand() { return std::make_unique<TuneCommand>(); }

}  // namespace tilesmith
