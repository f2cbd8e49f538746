#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "tools/cli/conditions.h"
#include "tools/cli/disassembly.h"
#include "tools/cli/farm.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/cli/targets.h"
#include "tools/commands/commands.h"
#include "tools/quantize/in_place.h"
#include "tools/tune/tune_model.h"
#include "tools/tune/tune_report.h"
#include "tools/tune/tune_view.h"
#include "tuner/search/searcher.h"

namespace tilesmith {
namespace {

class TuneCommand : public Command {
 public:
  TuneCommand()
      : Command({.name = "tune",
                 .purpose = "Search for the fastest schedule of each convolution by measuring",
                 .examples = "tilesmith tune resnet50 -o resnet50.jsonl --time-budget 8m\n"
                             "tilesmith tune ic256ih14oc256oh14kh3ph1+bias+relu -o conv.jsonl --trials 500 "
                             "--tuner random\n"
                             "tilesmith tune model.onnx -o model.jsonl --resume\n"
                             "tilesmith tune resnet50 -o resnet50.jsonl --farm redis://queue:6379/0"}) {}

  void Declare(Args& args) override {
    DeclareTargets(args, &target_);
    args.Group("Search");
    args.Positive(
        "--trials", &request_.trials,
        fmt::format("Configs to try per task; of a network on average, spent where they help most and "
                    "left out where none would (default {}; with --time-budget, as many as fit)",
                    NetworkTuneOptions().trials));
    args.Duration("--time-budget,--for", &request_.time_budget,
                  "For all of it: loading, oneDNN's times and the search; such as 90s, 8m, 1h30m");
    std::vector<std::string> tuners;
    for (const SearcherInfo& info : Searchers()) tuners.emplace_back(info.name);
    args.Choice("--tuner", &request_.options.searcher, tuners,
                fmt::format("Search strategy (default {})", request_.options.searcher));
    args.Texts("--history", &request_.history_paths,
               "Log of other tasks to learn from beforehand; may be repeated", "LOG");
    args.Text("--cost-model", &request_.cost_model_path,
              "Start from this model (see cost-model) instead of training one", "FILE");
    args.NonNegative("--seed", &seed_, "Of the search and of the data (default 1)");
    args.Flag("--resume", &resume_, "Go on with an existing log: what it holds is not measured again");
    args.Flag("--overwrite", &overwrite_, "Start an existing log afresh");
    args.Text("--db", &request_.database_path,
              "Database of what earlier tunings found; tasks it knows from as many trials cost nothing "
              "(default: in $XDG_DATA_HOME/tilesmith)",
              "FILE");
    args.Flag("--no-db", &no_database_, "Neither ask nor tell the database");
    args.Flag("--no-baseline", &no_baseline_,
              "Do not time oneDNN (what was timed before is in a file beside the log)");
    DeclarePrecision(
        args, &machine_options_.precision, kPrecisions,
        "Types to compute and store in: with int8 a MODEL is quantised and single convolutions are of "
        "bytes; mixed tunes every convolution in f32, bf16 and, of a MODEL, int8; with tf32 a GPU may "
        "round what it multiplies (default f32)");
    DeclareCalibration(args, &target_.model);
    args.Flag("--no-fusion", &no_fusion_, "Of a MODEL, leave out the fused alternatives to pairs of layers");
    DeclareAccuracy(args, &request_.accuracy);
    DeclareConditions(args, &request_.conditions);
    DeclareMachineOptions(args, &machine_options_);
    DeclareReproducible(args, &machine_options_.reproducible);
    DeclareFarm(args, &farm_, true);
    args.Group("Output");
    args.Text("-o,--output", &request_.log_path, "Tuning log to write (JSON lines, appended to)", "LOG");
    args.Text("--dump-code", &dump_directory_, "Write the machine code of each task's best config here",
              "DIR");
    args.Flag("--json", &json_, "Print the final table as JSON");
  }

  int Run() override {
    if (request_.log_path.empty()) throw Error(ErrorCode::kUsage, "-o LOG is required");
    std::vector<std::string> read = {target_.model.model, request_.cost_model_path};
    if (overwrite_) read.insert(read.end(), request_.history_paths.begin(), request_.history_paths.end());
    RequireOwnFile(request_.log_path, read);
    if (resume_ && overwrite_) throw Error(ErrorCode::kUsage, "--resume and --overwrite exclude each other");
    request_.use_database = !no_database_;
    request_.fusion = !no_fusion_;
    request_.precision = machine_options_.precision;
    request_.baselines = !no_baseline_;
    if (!request_.use_database && !request_.database_path.empty()) {
      throw Error(ErrorCode::kUsage, "--no-db and --db exclude each other");
    }
    if (no_fusion_ && target_.of_workloads())
      throw Error(ErrorCode::kUsage, "--no-fusion is for a MODEL: workloads say themselves what is fused");
    CheckAccuracyLimits(request_.accuracy);
    RequireWritableDirectory(dump_directory_);
    if (resume_) request_.existing_log = ExistingLog::kResume;
    if (overwrite_) request_.existing_log = ExistingLog::kOverwrite;
    request_.seed = static_cast<uint64_t>(seed_);
    if (farm_.wanted() || !farm_.class_name.empty()) return TuneOnFarm();
    request_.machine = OpenMachine(machine_options_);
    CatchInterrupts();
    LoadTargets([&] { return request_.machine; });
    return Tune();
  }

 private:
  // `open` gives this machine, to calibrate on.
  void LoadTargets(const std::function<DevicePtr()>& open) {
    ProgressLine progress;
    QuantizeTargets(request_.precision, open, SinksOf(progress), &target_);
    request_.targets = LoadTargetsToTune(target_);
    if (request_.precision == Precision::kMixed && request_.targets.is_network() &&
        machine_options_.target == kCpuDevice)
      request_.quantized = QuantizedTasks(target_.model, open(), SinksOf(progress));
  }

  // The classes one after the other, each learning from the logs of those before.
  int TuneOnFarm() {
    const std::vector<FarmClass> classes = ChosenClasses(farm_);
    const std::string log_path = request_.log_path;
    const double end = request_.begin + request_.time_budget;
    CatchInterrupts();
    LoadTargets([] { return OpenMachine({}); });
    int code = 0;
    for (size_t i = 0; i < classes.size(); ++i) {
      const FarmClass& farm_class = classes[i];
      if (i > 0) request_.begin = NowSeconds();
      request_.time_budget = std::max(0.0, end - request_.begin) / static_cast<double>(classes.size() - i);
      request_.machine = OpenFarmMachine(farm_class, machine_options_);
      if (farm_.class_name == "all") {
        std::filesystem::path path(log_path);
        path.replace_extension();
        request_.log_path =
            path.string() + "." + farm_class.name + std::filesystem::path(log_path).extension().string();
      }
      // So many that no worker waits for long while the last ones of a batch are measured.
      constexpr int kEach = 8;
      request_.options.batch = std::max(TuneOptions().batch, kEach * farm_class.workers);
      class_ = farm_class.name;
      code = std::max(code, Tune(&farm_class));
      request_.history_paths.push_back(request_.log_path);
    }
    return code;
  }

  int Tune(const FarmClass* farm_class = nullptr) {
    TuneView view;
    const WorkSinks sinks = SinksOf(view);
    if (farm_class != nullptr) {
      request_.measure_elsewhere = [&](const std::function<void()>& sync) {
        return MakeFarmMeasurer(farm_, *farm_class, sinks, sync);
      };
    }
    const TunedTasks tuned =
        TuneModel(request_, sinks,
                  [&](std::span<const TuneRow> rows, const NetworkProgress& at) { view.Show(rows, at); });
    view.Clear();
    Print(tuned);
    DumpCode(tuned.rows);
    CheckComplete(tuned);
    return 0;
  }

  void Print(const TunedTasks& tuned) const {
    Report report;
    report.Fact("threads", "threads", CountCell(request_.machine->threads()));
    if (!class_.empty()) report.Fact("class", "class", TextCell(class_));
    AddCalibration(report, target_.model.quantization.get());
    AddTuningTable(report, tuned.rows);
    AddNetworkTotal(report, tuned.rows, tuned.network_seconds);
    report.Fact("log", "log", TextCell(request_.log_path));
    if (tuned.database_path) report.Fact("database", "database", TextCell(*tuned.database_path));
    report.Fact("elapsed_seconds", "elapsed", {tuned.elapsed_seconds, DurationText(tuned.elapsed_seconds)});
    if (!request_.measure_elsewhere) AddDisturbance(report, tuned.disturbance);
    PrintResults(report, json_, request_.machine->target());
  }

  void DumpCode(const std::vector<TuneRow>& rows) const {
    if (dump_directory_.empty()) return;
    for (const TuneRow& row : rows) {
      const std::optional<Record>& best = row.result.best;
      if (!best) continue;
      DumpConv(row.task.workload, best->template_name, best->config, request_.machine->target(),
               dump_directory_);
    }
  }

  void CheckComplete(const TunedTasks& tuned) const {
    if (tuned.stopped) {
      throw Error(
          ErrorCode::kInterrupted,
          fmt::format("interrupted; what was measured is in {}, --resume goes on", request_.log_path));
    }
    for (const TuneRow& row : tuned.rows) {
      if (row.result.best) continue;
      throw Error(ErrorCode::kNoCandidate, WhyNone(row));
    }
  }

  std::string WhyNone(const TuneRow& row) const {
    const int64_t trials = row.result.trials_measured, asked = request_.trials;
    const bool limited = std::isfinite(request_.accuracy.max_error);
    const bool more = asked > 0 && trials > asked && target_.of_workloads();
    return fmt::format(
        "no config of {} worked{} in {} trials{}", WorkloadToString(row.task.workload),
        limited ? fmt::format(" with an error of at most {:g}", request_.accuracy.max_error) : "", trials,
        more ? fmt::format(", {} more than --trials to find one", trials - asked) : "");
  }

  TargetOptions target_;
  MachineOptions machine_options_;
  FarmOptions farm_;
  std::string class_;  // of a farm, that is tuned for
  TuneModelRequest request_;
  int64_t seed_ = 1;
  bool resume_ = false, overwrite_ = false, json_ = false, no_database_ = false, no_fusion_ = false,
       no_baseline_ = false;
  std::string dump_directory_;
};

}  // namespace

std::unique_ptr<Command> MakeTuneCommand() { return std::make_unique<TuneCommand>(); }

}  // namespace tilesmith
