#include <fmt/format.h>

#include <array>
#include <limits>
#include <vector>

#include "graph_tuner/planner/network_types.h"
#include "layouts/base/error.h"
#include "tools/cli/conditions.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output_file.h"
#include "tools/cli/records.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/commands/commands.h"
#include "tools/doctor/disturbance.h"
#include "tools/network/prediction_report.h"
#include "tools/quantize/in_place.h"
#include "tools/tune/optimize_model.h"
#include "tools/tune/tune_report.h"
#include "tools/tune/tune_view.h"

namespace tilesmith {
namespace {

class OptimizeCommand : public Command {
 public:
  OptimizeCommand()
      : Command(
            {.name = "optimize",
             .purpose = "Tune a network and choose its schedules and layouts, with a plan at any moment",
             .examples =
                 "tilesmith optimize resnet50 -o resnet50.plan.jsonl\n"
                 "tilesmith optimize model.onnx --for 10m -o model.plan.jsonl --log model.jsonl\n"
                 "tilesmith optimize model.onnx --for 5m -o model.plan.jsonl --log model.jsonl --resume"}) {}

  void Declare(Args& args) override {
    DeclareModelOptions(args, &request_.arguments.model);
    DeclarePlanning(args, &request_.arguments);
    DeclarePrecision(
        args, &request_.arguments.machine.precision,
        std::array{Precision::kF32, Precision::kBf16, Precision::kInt8, Precision::kMixed},
        "bf16: convolutions are computed and stored in it where that can be; int8: the network is "
        "quantised first; mixed: layer by layer what is fastest (default f32)");
    args.Real("--max-output-error", &max_output_error_,
              "With --precision mixed: how far the outputs may be off, relative to f32's (default: as far as "
              "it goes)");
    DeclareCalibration(args, &request_.arguments.model);
    args.Group("Search");
    args.Duration("--for,--time-budget", &request_.seconds,
                  "For all of it (default 60s); Ctrl-C ends it sooner and keeps the best plan so far");
    args.Positive("--max-weights", &max_weights_,
                  "Packed weights of all convolutions in MiB, at most (default: no limit)");
    DeclareConditions(args, &request_.conditions);
    args.NonNegative("--seed", &seed_, "Of the search and of the data (default 1)");
    args.Flag("--resume", &resume_, "Go on with an existing log and plan");
    args.Flag("--overwrite", &overwrite_, "Start an existing log afresh");
    args.Text("--db", &request_.database_path,
              "Database of what earlier tunings found (default: in $XDG_DATA_HOME/tilesmith)", "FILE");
    args.Flag("--no-db", &no_database_, "Neither ask nor tell the database");
    args.Flag("--no-shipped", &no_shipped_,
              "Do not try first what was fast on other machines and comes with tilesmith");
    args.Flag("--baseline", &request_.baselines, "Time oneDNN, too, for at most a fifth of the time");
    args.Group("Output");
    args.Text("-o,--output", &request_.plan_path, "Plan to write: the best so far, from the first seconds on",
              "PLAN");
    args.Text("--log", &request_.log_path, "Tuning log to write (default: the plan's path with .log.jsonl)",
              "LOG");
    args.Text("--save", &save_path_, "Write what --json prints to this file, too", "FILE");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    if (request_.plan_path.empty()) throw Error(ErrorCode::kUsage, "-o PLAN is required");
    if (resume_ && overwrite_) throw Error(ErrorCode::kUsage, "--resume and --overwrite exclude each other");
    if (no_database_ && !request_.database_path.empty())
      throw Error(ErrorCode::kUsage, "--no-db and --db exclude each other");
    const std::string& log = request_.log_path;
    RequireDifferent({request_.plan_path, log.empty() ? LogPathBeside(request_.plan_path) : log, save_path_});
    RequireReplaceable(save_path_, OutputFormat::kJson, {request_.arguments.model.model});
    if (!save_path_.empty() && SizesToTune(request_.arguments.model).size() > 1) {
      throw Error(ErrorCode::kUsage,
                  "--save is for one size of the inputs; --json prints an object for each");
    }
    CheckAccuracyLimits(request_.arguments.tuning.accuracy);
    if (resume_) request_.existing_log = ExistingLog::kResume;
    if (overwrite_) request_.existing_log = ExistingLog::kOverwrite;
    request_.max_output_error = OutputErrorLimit(max_output_error_);
    if (max_weights_ > 0) request_.max_weight_bytes = max_weights_ << 20;
    request_.use_database = !no_database_;
    request_.shipped = !no_shipped_;
    request_.seed = static_cast<uint64_t>(seed_);
    CatchInterrupts();
    TuneView view;
    const WorkSinks sinks = SinksOf(view);
    const OptimizedModel optimized =
        OptimizeModel(request_, sinks, [&](std::span<const TuneRow> rows, const OptimizeProgress& at) {
          view.Show(rows, at.tuning, ProgressText(at));
        });
    view.Clear();
    Print(optimized);
    if (!optimized.stopped) return 0;
    throw Error(ErrorCode::kInterrupted,
                fmt::format("interrupted; the best plan so far is in {}", request_.plan_path));
  }

 private:
  // JSON has an object for each size of the inputs.
  void Print(const OptimizedModel& optimized) const {
    const size_t count = optimized.plans.size();
    if (!json_ || count < 2) return ReportOf(optimized, 0, count).Print(json_, save_path_);
    for (size_t size = 0; size < count; ++size) ReportOf(optimized, size, 1).Print(json_, save_path_);
  }

  // It reads `count` sizes from `first` on.
  Report ReportOf(const OptimizedModel& optimized, size_t first, size_t count) const {
    Report report;
    const GraphTuningArguments& arguments = request_.arguments;
    const std::vector<ModelOptions> sizes = SizesToTune(arguments.model);
    const bool random = arguments.model.calibration.paths.empty();
    if (!optimized.plans.empty()) AddCalibration(report, optimized.plans.front().plan.quantization.get());
    AddTuningTable(report, optimized.rows);
    for (size_t size = first; size < first + count; ++size) {
      AddShapes(report, sizes[size]);
      AddPlan(report, optimized.plans[size]);
      if (size < optimized.differences.size())
        AddOutputError(report, optimized.differences[size].error, random);
      if (size < optimized.types.size() && !optimized.types[size].empty())
        report.AddTable(TypesTable(optimized.types[size], random));
    }
    report.Fact("plan", "plan", TextCell(request_.plan_path));
    report.Fact("plans_written", "plans written", CountCell(optimized.plans_written));
    report.Fact("first_plan_seconds", "the first after",
                {optimized.first_plan_seconds, DurationText(optimized.first_plan_seconds)});
    const std::string& log = request_.log_path;
    report.Fact("log", "log", TextCell(log.empty() ? LogPathBeside(request_.plan_path) : log));
    if (optimized.database_path) report.Fact("database", "database", TextCell(*optimized.database_path));
    report.Fact("elapsed_seconds", "elapsed",
                {optimized.elapsed_seconds, DurationText(optimized.elapsed_seconds)});
    AddDisturbance(report, optimized.disturbance);
    AddOrigin(report.details(), ChosenTarget(arguments.machine));
    if (count == 1) AddHashes(report.details(), optimized.plans[first].plan);
    return report;
  }

  static void AddPlan(Report& report, const OptimizedPlan& optimized) {
    const double measured = optimized.measurement.seconds;
    const double saved = optimized.seconds_saved;
    report.Fact("network", "network", TextCell(optimized.plan.network));
    report.Fact("measured_seconds", "measured ms", KnownMillisecondsCell(measured));
    report.Fact("predicted_seconds", "predicted ms", KnownMillisecondsCell(KnownPrediction(optimized.plan)));
    report.Fact("untuned_ratio", "untuned takes",
                measured > 0 && saved != 0
                    ? Cell{(measured + saved) / measured,
                           fmt::format("{:.2f} times as long", (measured + saved) / measured)}
                    : NoCell());
    report.Fact("solutions", "solutions that ran", CountCell(optimized.solutions));
    AddRegions(report, optimized.plan);
    report.Fact("certificate", "certificate", TextCell(optimized.plan.certificate));
  }

  OptimizeModelRequest request_;
  std::string save_path_;
  double max_output_error_ = std::numeric_limits<double>::infinity();
  int64_t max_weights_ = 0, seed_ = 1;
  bool resume_ = false, overwrite_ = false, no_database_ = false, no_shipped_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeOptimizeCommand() { return std::make_unique<OptimizeCommand>(); }

}  // namespace tilesmith
