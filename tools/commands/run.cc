#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/planner/network_run.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "layouts/measure/clock.h"
#include "ops/base/order.h"
#include "templates/base/code_sink.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/model.h"
#include "tools/cli/output_file.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/cli/system_files.h"
#include "tools/commands/commands.h"
#include "tools/doctor/disturbance.h"
#include "tools/network/compiled_choice.h"
#include "tools/network/input_files.h"
#include "tools/network/plan_choice.h"
#include "tools/network/prediction_report.h"
#include "tools/network/profile_report.h"
#include "tools/network/stream_runs.h"
#include "tools/quantize/in_place.h"

namespace tilesmith {
namespace {

class RunNetworkCommand : public Command {
 public:
  RunNetworkCommand()
      : Command({.name = "run",
                 .purpose = "Run a network, and say how long it takes and where",
                 .examples = "tilesmith run resnet50 --plan resnet50.plan.jsonl --runs 100 --profile\n"
                             "tilesmith run model.onnx --input data=image.npy --output result.npz --check\n"
                             "tilesmith run resnet18 --trace trace.json --csv steps.csv\n"
                             "tilesmith run resnet18.tsc --check --model resnet18"}) {}
  void Declare(Args& args) override {
    args_ = &args;
    DeclareModelOptions(args, &model_);
    DeclarePlan(args, &plan_path_);
    args.Flag("--force", &force_, "Use the plan though it was made for another network, machine or version");
    args.Flag("--strict", &strict_, "Refuse a plan that was made for another number of threads");
    args.Flag("--verify", &verify_, "Of a compiled network: check the sums of weights and code, too");
    args.Texts("--input", &inputs_,
               "FILE.npz, NAME=FILE.npy or NAME=FILE.npz; may be repeated (default: seeded random data)",
               "FILE");
    args.NonNegative("--seed", &seed_, "Of the random inputs (default 1)");
    args.Positive("--runs", &runs_, "Timed runs (default 20)");
    args.Flag("--check", &check_,
              "Compare outputs and every layer with the reference; exit 5 when they differ");
    DeclareSource(args, &source_, "--check, with the plan, if one made it");
    DeclareStreams(args, &streams_);
    args.Texts("--percentile", &percentiles_,
               "Of the streams' latencies; may be repeated (default 50, 90, 99)", "P");
    DeclarePrecision(args, &precision_, std::array{Precision::kF32, Precision::kInt8},
                     "int8: quantised while it is loaded; a plan says itself (default f32)");
    DeclareCalibration(args, &model_);
    args.Group("Output");
    args.Text("--output", &output_path_, "FILE.npz, or a directory for one .npy per output", "FILE|DIR");
    args.Text("--latency-csv", &latency_path_,
              "Write every run of the streams: when it began, how long it took", "FILE");
    args.Flag("--profile", &profile_, "Print every step with its time, and what they add up to");
    args.Text("--csv", &csv_path_, "Write the profile as CSV", "FILE");
    args.Text("--trace", &trace_path_, "Write the profile as a Chrome trace", "FILE");
    args.Text("--dump-code", &dump_directory_, "Write the machine code of every convolution here", "DIR");
    args.Flag("--perf-map", &perf_map_, "Name the generated code for perf, in /tmp/perf-PID.map");
    DeclareMachineOptions(args, &machine_options_);
    DeclareReproducible(args, &machine_options_.reproducible);
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    const bool wants_more = check_ || profile_ || perf_map_ || !output_path_.empty() || !csv_path_.empty() ||
                            !trace_path_.empty() || !dump_directory_.empty();
    if (WantsStreams() && wants_more) {
      throw Error(
          ErrorCode::kUsage,
          "--streams, --duration, --warmup, --percentile and --latency-csv are about times of streams: "
          "neither outputs, nor a profile, nor code");
    }
    if (WantsStreams())
      args_->RefuseGiven({"--runs"}, fmt::format("is not for {}: runs of streams are counted for --duration",
                                                 OptionOfStreams()));
    if (force_ && strict_) throw Error(ErrorCode::kUsage, "--force and --strict exclude each other");
    RequireWritableFiles();
    Report report;
    try {
      PrintIfInterrupted(report, json_, [&] { RunNetwork(report); });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInterrupted || report.empty() || to_make_.empty()) throw;
      throw Error(error.code(), fmt::format("{}; not made: {}", error.what(), fmt::join(to_make_, ", ")));
    }
    if (Interrupted())
      throw Error(ErrorCode::kInterrupted, "interrupted; the results say what was measured until then");
    return 0;
  }

 private:
  // Before minutes are spent on what they are to hold.
  void RequireWritableFiles() const {
    RequireDifferent({csv_path_, trace_path_, latency_path_, output_path_});
    RequireReplaceable(csv_path_, OutputFormat::kCsv);
    RequireReplaceable(trace_path_, OutputFormat::kJson);
    RequireReplaceable(latency_path_, OutputFormat::kCsv);
    RequireWritableDirectory(dump_directory_);
    if (!output_path_.empty()) RequireSavable(output_path_, inputs_);
  }

  // A compiled network says itself what others are asked for.
  void RunCompiled(Report& report) {
    args_->RefuseGiven({"--force", "--strict", "--batch", "--precision", "--calibrate", "--streams",
                        "--duration", "--warmup", "--percentile", "--latency-csv", "--target"},
                       "is for models, not for compiled networks");
    if (!check_) args_->RefuseGiven({"--plan", "--model"}, "is for --check of compiled networks");
    if (check_ && source_.empty())
      throw Error(ErrorCode::kUsage, "--check needs the model that the network was compiled from: --model");
    const double asked = NowSeconds();
    const CompiledFile file(model_.model, verify_);
    std::vector<InputFile> files = ReadInputs(inputs_);
    std::map<std::string, Shape> shapes = ShapesByName(model_);
    for (const InputFile& input : files) shapes.insert({input.name, input.tensor.shape()});
    const ChosenNetwork chosen = ChooseCompiled(file, machine_options_, shapes);
    const auto& [path, origin, network] = chosen;
    std::vector<Tensor> inputs = InputsOf(network->inputs, std::move(files), static_cast<uint64_t>(seed_));
    const PinnedTeam team(network->device);
    CatchInterrupts();
    double load_seconds = NowSeconds() - asked;
    const std::optional<Graph> graph = check_ ? std::optional(LoadSource(chosen)) : std::nullopt;
    Plan plan;
    if (graph) {
      plan = OpenPlan(plan_path_, *graph, network->device, {.strict = true});
      RequireSource(chosen, plan_path_, plan);
    }
    const double known = NowSeconds();
    NetworkRun run(network, std::move(plan), std::move(inputs), &InterruptFlag());
    load_seconds += NowSeconds() - known;
    report.Fact("network", "network", TextCell(origin.network));
    AddOrigin(report.details(), network->device->target());
    AddHashes(report.details(), origin.graph_hash, origin.plan_hash);
    Finish(report, run,
           {.load_seconds = load_seconds,
            .schedule = "compiled",
            .predicted_seconds = origin.predicted_seconds,
            .threads = network->device->threads()});
    CheckAndPrint(report, run, graph ? &*graph : nullptr);
  }

  Graph LoadSource(const ChosenNetwork& compiled) {
    TakeSource(compiled, source_, &model_);
    TakeQuantization(plan_path_, &model_);
    Graph graph = LoadModel(model_);
    RequireSource(compiled, model_, graph);
    return graph;
  }

  // graph: what to check it with; null: it is not checked.
  void CheckAndPrint(Report& report, NetworkRun& run, const Graph* graph) const {
    const NetworkCheck check = graph ? run.Check(*graph) : NetworkCheck();
    if (graph) AddCheck(report, check);
    report.Print(json_);
    if (!check.wrong.empty()) throw Error(ErrorCode::kWrongAnswer, check.wrong);
  }

  void RunNetwork(Report& report) {
    if (IsCompiledFile(model_.model)) return RunCompiled(report);
    args_->RefuseGiven({"--verify", "--model"}, "is for compiled networks, not for models");
    if (!plan_path_.empty() && machine_options_.target != kCpuDevice &&
        ReadPlanHeader(plan_path_).target.tf32)
      machine_options_.precision = Precision::kTf32;
    if (!strict_) machine_options_.threads = ThreadsFor(plan_path_, machine_options_.threads);
    machine_options_.reproducible |= AskReproducible(plan_path_);
    DevicePtr machine = OpenMachine(machine_options_);
    const double asked = NowSeconds();
    std::vector<InputFile> files = ReadInputs(inputs_);
    for (const InputFile& file : files) model_.open_shapes[file.name] = file.tensor.shape();
    TakeQuantization(plan_path_, &model_);
    ProgressLine progress;
    QuantizeInPlace(
        precision_, [&] { return machine; }, SinksOf(progress), &model_);
    Graph graph = LoadModel(model_);
    const Plan plan = OpenPlan(plan_path_, graph, machine, {.force = force_, .strict = strict_});
    std::vector<Tensor> inputs = InputsOf(graph, std::move(files), static_cast<uint64_t>(seed_));
    const PinnedTeam team(machine);
    CatchInterrupts();
    if (WantsStreams()) {
      WarnIfDisturbed(machine, SinksOf(progress));
      return RunInStreams(report, graph, plan, machine, inputs);
    }
    const auto checked = check_ ? std::optional(graph) : std::nullopt;
    NetworkRun run(std::move(graph), plan, machine, std::move(inputs), &InterruptFlag());
    const double load_seconds = NowSeconds() - asked;
    WarnIfDisturbed(machine, SinksOf(progress));
    report.Fact("network", "network", TextCell(plan.network));
    AddCalibration(report, model_.quantization.get());
    AddOrigin(report.details(), machine->target());
    AddHashes(report.details(), plan);
    Finish(report, run,
           {.load_seconds = load_seconds,
            .schedule = plan.solver,
            // A plan that was forced may be of other threads.
            .predicted_seconds = plan.threads == machine->threads() ? KnownPrediction(plan) : 0,
            .threads = machine->threads()});
    CheckAndPrint(report, run, checked ? &*checked : nullptr);
  }

  // What is known of a run beside its times.
  struct RunFacts {
    double load_seconds = 0;
    std::string schedule;
    double predicted_seconds = 0;
    int threads = 1;
  };

  // Times it, and makes what is asked for behind that.
  void Finish(Report& report, NetworkRun& run, const RunFacts& facts) {
    if (perf_map_) WritePerfMap(run.executor().Code());
    if (!dump_directory_.empty()) WriteCodeDump(dump_directory_, run.executor().Code());
    ProgressLine progress;
    MachineWatch watch;
    const RunTimes times = run.Time(runs_, [&](size_t done) {
      if (done % kWatchedRuns == 0) watch.EndInterval();
      progress.Show(fmt::format("run {} of {}", done, runs_));
    });
    watch.EndInterval();
    progress.Clear();
    report.Fact("load_seconds", "loading ms", MillisecondsCell(facts.load_seconds));
    AddTimes(report, facts, times, run.executor());
    AddDisturbance(report, watch.total());
    to_make_ = WantedBehindRuns();
    if (profile_ || !csv_path_.empty() || !trace_path_.empty())
      AddProfile(report, run, times.median, facts.threads);
    if (!output_path_.empty()) {
      run.Run();
      SaveOutputs(output_path_, run.Outputs());
      Made({output_path_});
    }
  }

  // In words for people.
  std::vector<std::string> WantedBehindRuns() const {
    std::vector<std::string> wanted = {csv_path_, trace_path_, output_path_};
    if (profile_) wanted.insert(wanted.begin(), kProfile);
    if (check_) wanted.emplace_back("the check");
    std::erase(wanted, "");
    return wanted;
  }

  void Made(std::initializer_list<std::string> made) {
    for (const std::string& what : made) std::erase(to_make_, what);
  }

  // One that was given. Precondition: WantsStreams.
  const char* OptionOfStreams() const {
    for (const char* option : {"--streams", "--duration", "--warmup", "--percentile"})
      if (args_->IsGiven(option)) return option;
    return "--latency-csv";
  }
  bool WantsStreams() const { return streams_.asked() || !percentiles_.empty() || !latency_path_.empty(); }

  void RunInStreams(Report& report, const Graph& graph, const Plan& plan, const DevicePtr& machine,
                    const std::vector<Tensor>& inputs) {
    const std::vector<double> percentiles = ParsePercentiles(percentiles_);
    const StreamTimes times =
        RunStreams(graph, plan, machine, inputs, streams_.WithDefaults(), &InterruptFlag());
    report.Fact("network", "network", TextCell(plan.network));
    AddCalibration(report, model_.quantization.get());
    report.Fact("schedule", "schedule", TextCell(plan.solver));
    AddReproducible(report, machine->target());
    AddOrigin(report.details(), machine->target());
    AddStreamTimes(report, times, BatchOf(graph), percentiles);
    report.Fact("disturbed_share", "disturbed", DisturbedCell(times.disturbed_share));
    if (!latency_path_.empty()) WriteTextFile(latency_path_, LatencyCsv(times));
    report.Print(json_);
  }

  static void AddReproducible(Report& report, const Target& target) {
    if (target.reproducible)
      report.Fact("reproducible", "reproducible", Cell{true, fmt::format("yes, by order {}", kOrderVersion)});
  }

  static void AddTimes(Report& report, const RunFacts& facts, const RunTimes& times,
                       const Executor& executor) {
    report.Fact("threads", "threads", CountCell(facts.threads));
    report.Fact("schedule", "schedule", TextCell(facts.schedule));
    AddReproducible(report, executor.network().device->target());
    report.Fact("runs", "runs", CountCell(static_cast<int64_t>(times.seconds.size())));
    report.Fact("first_seconds", "first run ms", MillisecondsCell(times.untimed_seconds));
    report.Fact("minimum_seconds", "minimum ms", MillisecondsCell(times.minimum));
    report.Fact("median_seconds", "median ms", MillisecondsCell(times.median));
    report.Fact("p90_seconds", "p90 ms", MillisecondsCell(times.p90));
    report.details().Fact("sample_seconds", "", ListCell(times.seconds));
    report.Fact("predicted_seconds", "predicted ms", KnownMillisecondsCell(facts.predicted_seconds));
    report.Fact("activation_bytes", "activations MiB",
                MebibytesCell(static_cast<int64_t>(executor.ArenaBytes())));
    const int64_t without_regions = executor.network().layer_by_layer_bytes;
    if (!executor.network().regions.empty() && without_regions > 0)
      report.Fact("layer_by_layer_bytes", "  without regions MiB", MebibytesCell(without_regions));
    report.Fact("weight_bytes", "weights MiB",
                MebibytesCell(static_cast<int64_t>(executor.PackedWeightBytes())));
    report.Fact("peak_bytes", "process's peak MiB", MebibytesCell(PeakResidentBytes()));
  }

  static void AddCheck(Report& report, const NetworkCheck& check) {
    const auto cell = [](double value) { return Cell{value, fmt::format("{:.1e}", value)}; };
    report.Fact("difference", "difference", cell(check.difference));
    report.Fact("allowed_difference", "allowed", {check.allowed, DescribeAllowed(check)});
    report.Fact("amplified_rounding", "rounding in it", cell(check.rounding));
    report.Fact("checked_steps", "checked steps", CountCell(check.steps));
    report.Fact("worst_step", "worst step", TextCell(check.worst_step));
    report.Fact("worst_step_difference", "its difference", cell(check.worst_step_difference));
    report.Fact("worst_step_allowed", "its bound", cell(check.worst_step_allowed));
    if (!check.wrong.empty()) report.Fact("wrong", "wrong", TextCell(check.wrong));
    if (check.not_numbers > 0) {
      report.Fact("not_numbers", "NaN or inf",
                  {check.not_numbers, fmt::format("{} values are in both", check.not_numbers)});
    }
    if (check.spread > 0) {
      report.Fact("spread", "spread by tiles", {check.spread, fmt::format("{} values", check.spread)});
    }
  }

  void AddProfile(Report& report, NetworkRun& run, double median_seconds, int threads) {
    const std::vector<StepProfile> steps =
        run.ProfileRepeated(static_cast<int>(std::min<int64_t>(runs_, 1000)));
    Made({kProfile, csv_path_, trace_path_});
    const Table table = ProfileTable(steps);
    if (!csv_path_.empty()) WriteTextFile(csv_path_, table.ToCsv());
    if (!trace_path_.empty()) WriteTextFile(trace_path_, ChromeTrace(steps));
    if (!profile_) return;
    report.AddTable(table);
    const std::vector<RegionProfile> regions = RegionProfiles(run.executor().network());
    if (!regions.empty()) report.AddTable(RegionTable(regions));
    report.AddTable(KindTable(steps));
    report.AddTable(TotalsTable(steps, median_seconds, SeePlacement(threads).barrier_seconds));
  }

  static constexpr size_t kWatchedRuns = 10;  // between two looks at the machine
  static constexpr const char* kProfile = "the profile";
  const Args* args_ = nullptr;  // while it runs
  ModelOptions model_;
  MachineOptions machine_options_;
  std::string plan_path_, source_, output_path_, csv_path_, trace_path_, dump_directory_;
  std::vector<std::string> inputs_, percentiles_;
  StreamOptions streams_ = kNoStreams;
  std::string latency_path_;
  Precision precision_ = Precision::kF32;
  int64_t runs_ = 20, seed_ = 1;
  std::vector<std::string> to_make_;  // behind the runs, as long as it is not made
  bool force_ = false, strict_ = false, check_ = false, profile_ = false, perf_map_ = false;
  bool verify_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeRunCommand() { return std::make_unique<RunNetworkCommand>(); }

}  // namespace tilesmith
