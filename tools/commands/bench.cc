#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "layouts/base/error.h"
#include "layouts/transform_benchmark.h"
#include "tools/bench/bench_gpu.h"
#include "tools/bench/bench_model.h"
#include "tools/bench/stream_sweep.h"
#include "tools/cli/conditions.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/machine.h"
#include "tools/cli/output_file.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/commands/commands.h"
#include "tools/network/plan_choice.h"
#include "tools/onednn/onednn.h"
#include "tools/peers/onnx_runtime.h"
#include "tools/quantize/in_place.h"

namespace tilesmith {
namespace {

// Layout transforms beside memcpy: shapes as they occur in CNNs, for every pair of NCHW, NHWC, NCHW8c and
// NCHW16c. Precondition: a PinnedTeam lives.
Table TransformTable(const DevicePtr& machine) {
  const Shape shapes[] = {
      {1, 3, 224, 224}, {1, 64, 56, 56}, {1, 386, 14, 14}, {1, 2048, 7, 7}, {8, 64, 56, 56}};
  const Layout layouts[] = {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(8), Layout::Blocked(16)};
  Table table("transforms", "",
              {{"shape", "shape"},
               {"from", "from"},
               {"to", "to"},
               {"seconds", "ms"},
               {"copy_seconds", "memcpy ms"},
               {"ratio", "memcpy / transform"}});
  for (const Shape& shape : shapes) {
    for (const Layout& from : layouts) {
      for (const Layout& to : layouts) {
        if (SameMemory(shape, from, to)) continue;
        const TransformTiming timing =
            MeasureTransform(shape, from, to, machine->target(), machine->threads());
        table.AddRow({TextCell(ShapeToString(shape)), TextCell(from.ToString()), TextCell(to.ToString()),
                      MillisecondsCell(timing.seconds), MillisecondsCell(timing.copy_seconds),
                      RatioCell(timing.copy_seconds / timing.seconds)});
      }
    }
  }
  return table;
}

class BenchCommand : public Command {
 public:
  BenchCommand()
      : Command({.name = "bench",
                 .purpose = "Time convolutions and networks beside oneDNN and, if it is there, ONNX Runtime; "
                            "on a GPU beside "
                            "cuDNN",
                 .examples = "tilesmith bench resnet50 --plan resnet50.plan.jsonl\n"
                             "tilesmith bench --suite all --log suites.jsonl --csv suites.csv\n"
                             "tilesmith bench ic64ih56oc64oh56kh3ph1 --time 2s\n"
                             "tilesmith bench resnet50 --sweep threads,streams\n"
                             "tilesmith bench resnet50.tsc --model resnet50 --plan resnet50.plan.jsonl\n"
                             "tilesmith bench --transforms"}) {}
  void Declare(Args& args) override {
    args_ = &args;
    DeclareTargets(args, &request_.targets);
    args.Text("--plan", &request_.plan_path, "Schedules from optimize or graph-tune (MODEL only)", "PLAN");
    DeclareSource(args, &source_, "what is beside it");
    args.Flag("--strict", &request_.strict, "Refuse a plan that was made for another number of threads");
    args.Text("--log", &request_.log_path, "Schedules from a tuning log: the fastest of each convolution",
              "LOG");
    args.Choice("--against", &request_.against, {"best", "direct"},
                "oneDNN's fastest algorithm (default, unless a suite says otherwise), or its direct one");
    args.Duration("--time", &request_.seconds, "For each convolution (default 500ms)");
    args.Duration("--network-time", &request_.network_seconds,
                  "For a whole network, and again beside ONNX Runtime (default 4s)");
    args.Real("--fail-below", &fail_below_, "Exit with 6 when the geometric mean ratio is below this");
    args.Flag("--transforms", &transforms_, "Layout transforms beside memcpy, instead");
    args.Text("--sweep", &sweep_,
              "Throughput and latency of a MODEL in all settings of these, instead: threads,batch,streams",
              "WHAT");
    DeclareStreams(args, &streams_);
    args.Text(
        "--onnxruntime", &request_.onnxruntime,
        "ONNX Runtime's library, to run the MODEL beside, or none (default: what tools/fetch-peers fetched)",
        "FILE");
    DeclareAccuracy(args, &request_.accuracy);
    DeclareConditions(args, &request_.conditions);
    DeclareMachineOptions(args, &machine_options_);
    DeclareReproducible(args, &machine_options_.reproducible);
    DeclarePrecision(
        args, &machine_options_.precision,
        std::array{Precision::kF32, Precision::kInt8, Precision::kTf32, Precision::kBf16},
        "Types of both sides: bf16 is multiplied and stored (a MODEL's type comes with its plan, on a "
        "GPU it may be given); with int8 a MODEL is quantised and single convolutions are of bytes; "
        "with tf32 a GPU may round what it multiplies (default f32)");
    DeclareCalibration(args, &request_.targets.model);
    args.Group("Output");
    args.Text("--save", &save_path_, "Write what --json prints to this file, too", "FILE");
    args.Text("--csv", &csv_path_, "Write the table as CSV, behind # lines that say where it is from",
              "FILE");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    const std::vector<std::string> read = {request_.plan_path, request_.log_path,
                                           request_.targets.model.model};
    if (!(fail_below_ > 0))
      throw Error(ErrorCode::kUsage, fmt::format("--fail-below must be above 0, got {}", fail_below_));
    RefuseIgnored();
    RequireDifferent({csv_path_, save_path_});
    RequireReplaceable(csv_path_, OutputFormat::kCsv, read);
    RequireReplaceable(save_path_, OutputFormat::kJson, read);
    if (!request_.strict) machine_options_.threads = ThreadsFor(request_.plan_path, machine_options_.threads);
    machine_options_.reproducible |= AskReproducible(request_.plan_path);
    if (IsCompiledFile(request_.targets.model.model)) {
      TakeCompiled();
    } else {
      args_->RefuseGiven({"--model"}, "is for compiled networks");
      request_.machine = OpenMachine(machine_options_);
    }
    request_.precision = machine_options_.precision;
    if (request_.machine->target().device != kCpuDevice) return RunOnGpu();
    if (transforms_) return RunTransforms();
    CatchInterrupts();
    ProgressLine progress;
    TakeQuantization(request_.plan_path, &request_.targets.model);
    QuantizeTargets(
        request_.precision, [&] { return request_.machine; }, SinksOf(progress), &request_.targets);
    if (!sweep_.empty() || streams_.asked()) return RunSweep();
    const BenchedModel bench = BenchModel(request_, SinksOf(progress));
    progress.Clear();
    Report report;
    AddCalibration(report, request_.targets.model.quantization.get());
    AddBench(report, bench, request_.machine);
    WriteCsv(BenchRowsTable(bench), BenchTitle(bench), bench.peak_flops);
    report.Print(json_, save_path_);
    if (bench.stopped) ThrowInterrupted();
    return CheckGeomean(bench.geomean);
  }

 private:
  // Its network runs; what else is timed comes with the model.
  void TakeCompiled() {
    ModelOptions& model = request_.targets.model;
    args_->RefuseGiven({"--suite", "--transforms", "--sweep", "--streams", "--duration", "--warmup", "--log",
                        "--strict", "--batch", "--precision", "--calibrate", "--target", "--conditions"},
                       "is for models, not for compiled networks");
    if (source_.empty())
      args_->RefuseGiven({"--plan", "--against", "--time", "--onnxruntime", "--fail-below", "--csv"},
                         "needs the model that the network was compiled from: --model");
    request_.compiled = ChooseCompiled(CompiledFile(model.model), machine_options_, ShapesByName(model));
    request_.machine = request_.compiled->network->device;
    model.model.clear();
    if (source_.empty()) return;
    if (!LooksLikeModel(source_))
      throw Error(ErrorCode::kUsage,
                  fmt::format("--model {} is neither an ONNX file nor a built-in network", source_));
    TakeSource(*request_.compiled, source_, &model);
  }

  void RefuseIgnored() const {
    if (transforms_)
      args_->RefuseGiven({"--time", "--network-time", "--onnxruntime"}, "is not for --transforms");
    if (!sweep_.empty() || streams_.asked())
      args_->RefuseGiven({"--time", "--network-time"}, "is not for --sweep and --streams: give --duration");
    if (request_.targets.of_workloads())
      args_->RefuseGiven({"--network-time", "--onnxruntime"}, "is for a MODEL");
    CheckAccuracyLimits(request_.accuracy);
    if (request_.log_path.empty() && sweep_.empty() && !streams_.asked())
      args_->RefuseGiven({"--forbid", "--max-error"}, "is for --log: it says which of its records count");
  }

  int RunOnGpu() {
    RefuseOnGpu();
    CatchInterrupts();
    ProgressLine progress;
    const BenchedGpu bench = BenchGpu(request_, SinksOf(progress));
    progress.Clear();
    Report report;
    AddGpuBench(report, bench, request_.machine);
    if (!csv_path_.empty())
      WriteResults(csv_path_, GpuBenchTable(bench), "Convolutions beside cuDNN",
                   fmt::format("{}; cuDNN {}", MachineText(request_.machine->target()), bench.cudnn));
    report.Print(json_, save_path_);
    if (bench.stopped) ThrowInterrupted();
    return CheckGeomean(bench.geomean);
  }

  void RefuseOnGpu() const {
    const std::pair<bool, const char*> options[] = {
        {transforms_, "--transforms"},
        {!sweep_.empty(), "--sweep"},
        {streams_.asked(), "--streams"},
        {request_.precision == Precision::kInt8, "--precision int8"},
        {!request_.against.empty(), "--against"},
        {!request_.onnxruntime.empty(), "--onnxruntime"}};
    for (const auto& [given, name] : options)
      if (given) RequireCpu(request_.machine, name);
  }

  [[noreturn]] static void ThrowInterrupted() {
    throw Error(ErrorCode::kInterrupted, "interrupted; the results say what was measured until then");
  }

  int CheckGeomean(double geomean) const {
    if (fail_below_ == kNoLimit || geomean >= fail_below_) return 0;
    throw Error(ErrorCode::kTooSlow,
                fmt::format("the geometric mean ratio {:.3f} is below {}", geomean, fail_below_));
  }

  int RunTransforms() const {
    if (!request_.targets.model.model.empty() || !request_.targets.suite.empty()) {
      throw Error(ErrorCode::kUsage, "--transforms takes no MODEL, WORKLOAD or --suite");
    }
    const std::pair<bool, std::string_view> others[] = {{!request_.plan_path.empty(), "--plan"},
                                                        {!request_.log_path.empty(), "--log"},
                                                        {!sweep_.empty(), "--sweep"},
                                                        {streams_.asked(), "--streams"},
                                                        {fail_below_ != kNoLimit, "--fail-below"}};
    for (const auto& [given, name] : others)
      if (given) throw Error(ErrorCode::kUsage, fmt::format("{} is not for --transforms", name));
    const PinnedTeam team(request_.machine);
    Report report;
    const Table table = TransformTable(request_.machine);
    report.AddTable(table);
    AddOrigin(report.details(), request_.machine->target());
    report.Print(json_, save_path_);
    WriteCsv(table, "Layout transforms beside memcpy", 0);
    return 0;
  }

  int RunSweep() const {
    const std::pair<bool, std::string_view> others[] = {
        {!request_.targets.suite.empty(), "--suite"},
        {!request_.log_path.empty(), "--log"},
        {!request_.against.empty(), "--against"},
        {fail_below_ != kNoLimit, "--fail-below"},
        {!request_.accuracy.forbidden_templates.empty(), "--forbid"},
        {std::isfinite(request_.accuracy.max_error), "--max-error"},
        {request_.conditions.has_value(), "--conditions"},
        {request_.precision == Precision::kBf16, "--precision bf16"}};
    for (const auto& [given, name] : others)
      if (given)
        throw Error(
            ErrorCode::kUsage,
            fmt::format("{} is not for --sweep, --streams, --duration and --warmup, which take a MODEL",
                        name));
    SweepRequest sweep = {.model = request_.targets.model,
                          .machine = machine_options_,
                          .plan_path = request_.plan_path,
                          .each = streams_.WithDefaults(),
                          .onnxruntime = FindOnnxRuntime(request_.onnxruntime)};
    ParseSweep(sweep_, &sweep);
    if (sweep.batch) args_->RefuseGiven({"--batch"}, "is not for --sweep batch, which tries several");
    if (sweep.streams) args_->RefuseGiven({"--streams"}, "is not for --sweep streams, which tries several");
    ProgressLine progress;
    const std::vector<SweepRow> rows = SweepStreams(sweep, SinksOf(progress));
    progress.Clear();
    Report report;
    AddSweep(report, rows);
    AddOrigin(report.details(), request_.machine->target());
    report.Print(json_, save_path_);
    WriteCsv(SweepTable(rows), "Streams of " + sweep.model.model, 0);
    if (Interrupted()) ThrowInterrupted();
    return 0;
  }

  void WriteCsv(const Table& table, std::string_view title, double peak_flops) const {
    if (csv_path_.empty()) return;
    const DevicePtr& machine = request_.machine;
    const std::string peak = peak_flops > 0 ? fmt::format("; peak {:.0f} GFLOP/s", peak_flops * 1e-9) : "";
    WriteResults(csv_path_, table, title,
                 fmt::format("{}; {} threads, oneDNN {}{}", MachineText(machine->target()),
                             machine->threads(), OneDnnVersion(), peak));
  }

  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  const Args* args_ = nullptr;  // while it runs
  BenchModelRequest request_;
  MachineOptions machine_options_;
  StreamOptions streams_ = kNoStreams;
  std::string csv_path_, save_path_, sweep_, source_;
  double fail_below_ = kNoLimit;
  bool transforms_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeBenchCommand() { return std::make_unique<BenchCommand>(); }

}  // namespace tilesmith
