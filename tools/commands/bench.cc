#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "graph_tuner/executor/heuristic_plan.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "templates/base/fma_peak.h"
#include "tools/bench/bench_report.h"
#include "tools/bench/conv_bench.h"
#include "tools/bench/separate_schedules.h"
#include "tools/bench/suite_bench.h"
#include "tools/bench/transform_bench.h"
#include "tools/cli/accuracy.h"
#include "tools/cli/conditions.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/progress.h"
#include "tools/cli/records.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/cli/targets.h"
#include "tools/commands/commands.h"
#include "tools/doctor/measurements.h"
#include "tools/network/network_bench.h"
#include "tools/network/network_run.h"
#include "tools/network/profile_report.h"
#include "tools/peers/onnx_runtime.h"
#include "tools/peers/peer_bench.h"
#include "tuner/records/best_records.h"

namespace tilesmith {
namespace {

class BenchCommand : public Command {
 public:
  std::string_view Name() const override { return "bench"; }
  std::string_view Purpose() const override {
    return "Time convolutions and networks beside oneDNN and, if it is there, ONNX Runtime";
  }
  std::string_view Examples() const override {
    return "tilesmith bench resnet50 --plan resnet50.plan.jsonl\n"
           "tilesmith bench --suite all --log suites.jsonl --csv suites.csv\n"
           "tilesmith bench ic64ih56oc64oh56kh3ph1 --time 2s\n"
           "tilesmith bench --transforms";
  }
  void Declare(Args& args) override {
    DeclareTargets(args, &target_);
    args.Text("--plan", &plan_path_, "Schedules from graph-tune (MODEL only)");
    args.Text("--log", &log_path_, "Schedules from a tuning log: the fastest of each convolution");
    args.Choice("--against", &against_, {"best", "direct"},
                "oneDNN's fastest algorithm (default, unless a suite says otherwise), or its direct one");
    args.Text("--onnxruntime", &onnxruntime_,
              "ONNX Runtime's library, to run the MODEL beside (default: what tools/fetch-peers fetched)");
    args.Duration("--time", &seconds_, "For each convolution (default 500ms)");
    args.Real("--fail-below", &fail_below_, "Exit with 6 when the geometric mean ratio is below this");
    args.Text("--save", &save_path_, "Write what --json prints to this file, too");
    args.Text("--csv", &csv_path_, "Write the table as CSV, behind # lines that say where it is from");
    args.Flag("--transforms", &transforms_, "Layout transforms beside memcpy, instead");
    DeclareAccuracy(args, &accuracy_);
    DeclareConditions(args, &conditions_);
    DeclareMachineOptions(args, &machine_options_);
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    RequireWritable(csv_path_);
    RequireWritable(save_path_);
    machine_ = OpenMachine(machine_options_);
    if (transforms_) return RunTransforms();
    const Targets targets = LoadTargets(target_);
    if (!plan_path_.empty() && !targets.is_network()) {
      throw Error(ErrorCode::kUsage, "--plan needs a MODEL; give --log for workloads");
    }
    CheckAccuracyLimits(accuracy_);
    if (!log_path_.empty()) records_ = AcceptedRecords(accuracy_, LoadUsableRecords(log_path_, machine_.cpu));
    if (targets.is_network()) plan_ = OpenPlan(plan_path_, *targets.graph, machine_);
    const PinnedTeam team(machine_);
    CatchInterrupts();
    peak_ = MeasureFmaPeak(machine_.cpu, machine_.threads);

    Report report;
    report.Fact("threads", "threads", CountCell(machine_.threads));
    report.Fact("peak_flops", "FMA peak", {peak_, fmt::format("{:.0f} GFLOP/s", peak_ * 1e-9)});
    report.Fact("onednn", "oneDNN", TextCell(OneDnnVersion()));
    AddOrigin(report.details(), machine_.cpu);
    double geomean = 0;
    PrintIfInterrupted(report, json_, [&] {
      geomean = targets.suites.empty() ? BenchTasks(report, targets) : BenchSuites(report, targets.suites);
    });
    report.Print(json_);
    if (!save_path_.empty()) WriteTextFile(save_path_, report.ToJson());
    if (Interrupted()) return int(ErrorCode::kInterrupted);
    if (fail_below_ > 0 && !(geomean >= fail_below_)) {
      throw Error(ErrorCode::kTooSlow,
                  fmt::format("the geometric mean ratio {:.3f} is below {}", geomean, fail_below_));
    }
    return 0;
  }

 private:
  int RunTransforms() {
    if (!target_.model.model.empty() || !target_.suite.empty()) {
      throw Error(ErrorCode::kUsage, "--transforms takes no MODEL, WORKLOAD or --suite");
    }
    const PinnedTeam team(machine_);
    Report report;
    const Table table = TransformTable(machine_);
    report.AddTable(table);
    report.Print(json_);
    WriteCsv(table, "Layout transforms beside memcpy");
    return 0;
  }

  // The convs of a network, or one workload. Returns the geometric mean ratio.
  double BenchTasks(Report& report, const Targets& targets) {
    const bool cold = ColdWeights(conditions_, targets.tasks, targets.is_network(), machine_.cpu);
    const BenchView view{against_ == "direct", peak_};
    report.Fact("weights", "weights", TextCell(cold ? "cold" : "warm"));
    const std::vector<BenchRow> rows = Measure(targets.is_network() ? TasksOf(plan_) : targets.tasks, cold);
    const BenchTotals totals = AddBenchRows(report, rows, view);
    WriteCsv(BenchTable(rows, view),
             fmt::format("Convolutions beside oneDNN, weights {}", cold ? "cold" : "warm"));
    if (targets.is_network() && !Interrupted()) AddNetwork(report, *targets.graph, rows);
    if (targets.is_network() && !Interrupted()) AddPeer(report);
    return totals.geomean;
  }

  double BenchSuites(Report& report, const std::vector<Suite>& suites) {
    std::vector<SuiteBench> results;
    for (Suite suite : suites) {
      std::vector<ConvTask> tasks;
      for (const SuiteRow& row : suite.rows) tasks.push_back(row.task);
      suite.cold_weights = ColdWeights(conditions_, tasks.front());
      const bool direct = against_.empty() ? suite.against_direct : against_ == "direct";
      std::vector<BenchRow> rows = Measure(tasks, suite.cold_weights);
      results.push_back({std::move(suite), std::move(rows), {direct, peak_}});
      if (Interrupted()) break;
    }
    AddSuites(report, results);
    WriteCsv(SuiteRowsTable(results), "Classes of convolution beside oneDNN");
    return GeometricMeanRatio(results);
  }

  void WriteCsv(const Table& table, std::string_view title) const {
    if (csv_path_.empty()) return;
    const std::string peak = peak_ > 0 ? fmt::format("; FMA peak {:.0f} GFLOP/s", peak_ * 1e-9) : "";
    WriteResults(csv_path_, table, title,
                 fmt::format("{}; {} threads, oneDNN {}{}", MachineText(machine_.cpu), machine_.threads,
                             OneDnnVersion(), peak));
  }

  BestByWorkload BestOf(bool cold, const AccuracyLimits& limits) const {
    std::vector<Record> records;
    std::copy_if(records_.begin(), records_.end(), std::back_inserter(records), [&](const Record& record) {
      return record.conditions.threads == machine_.threads && record.conditions.cold_weights == cold &&
             Accepts(limits, record);
    });
    return BestRecords(records, machine_.cpu);
  }

  // By canonical workload: of the log the fastest record, those of the wanted kind of weights first; of a
  // plan the first schedule of a workload that it schedules differently in different places.
  std::map<std::string, Schedule> FindSchedules(bool cold, const AccuracyLimits& limits) const {
    std::map<std::string, Schedule> schedules;
    for (const bool wanted : {cold, !cold}) {
      for (const auto& [workload, by_layouts] : BestOf(wanted, limits)) {
        const auto best = std::min_element(
            by_layouts.begin(), by_layouts.end(),
            [](const auto& a, const auto& b) { return a.second.seconds < b.second.seconds; });
        schedules.insert({workload, {best->second.template_name, best->second.config, "log"}});
      }
    }
    for (const NodePlan& node : plan_.nodes) {
      if (!node.record) continue;
      schedules.insert_or_assign(WorkloadToString(node.record->workload),
                                 Schedule{node.record->template_name, node.record->config, "plan"});
    }
    return schedules;
  }

  std::vector<BenchRow> Measure(const std::vector<ConvTask>& tasks, bool cold) {
    AccuracyLimits limits;
    if (!tasks.empty()) limits.forbidden_templates = tasks.front().forbidden_templates;  // alike in a suite
    const std::map<std::string, Schedule> schedules = FindSchedules(cold, limits);
    const BestByWorkload best = BestOf(cold, limits);
    std::vector<BenchRow> rows;
    ProgressLine progress;
    for (const ConvTask& task : tasks) {
      if (Interrupted()) break;
      const std::string key = WorkloadToString(task.workload);
      progress.Show(fmt::format("{}/{} {}", rows.size() + 1, tasks.size(), key));
      const auto found = schedules.find(key);
      const Schedule schedule =
          found != schedules.end() ? found->second : DefaultSchedule(task.workload, machine_.cpu);
      std::optional<SeparateSchedules> separate;
      if (task.workload.fused()) separate = FastestSeparate(task.workload, best, machine_.cpu);
      UnlessInterrupted([&] {
        rows.push_back({task, BenchConv(task.workload, schedule, machine_, DuelFor(seconds_, cold),
                                        separate ? &*separate : nullptr)});
      });
    }
    return rows;
  }

  void AddPeer(Report& report) const {
    const std::string library = FindOnnxRuntime(onnxruntime_);
    if (library.empty()) {
      report.Fact("onnxruntime", "ONNX Runtime", TextCell("not here (tools/fetch-peers)"));
      return;
    }
    try {
      AddPeerBench(report, BenchPeer({target_.model, plan_path_, machine_, library,
                                      std::max(kNetworkSeconds, seconds_)}));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kEnvironment) throw;
      report.Fact("onnxruntime", "ONNX Runtime", TextCell(error.what()));
    }
  }

  DuelOptions DuelFor(double seconds, bool cold) const {
    return {.seconds = seconds, .cold = cold, .threads = machine_.threads, .stop = &InterruptFlag()};
  }

  void AddNetwork(Report& report, const Graph& graph, const std::vector<BenchRow>& rows) {
    std::map<std::string, OneDnnAlgorithm> fastest;
    for (const BenchRow& row : rows) {
      if (const OneDnnSide* side = row.bench.Fastest()) {
        fastest[WorkloadToString(row.bench.workload.main_conv())] = side->algorithm;
      }
    }
    const auto choose = [&](const ConvWorkload& workload) {
      const auto found = fastest.find(WorkloadToString(workload));
      return found == fastest.end() ? OneDnnAlgorithm::kAuto : found->second;
    };
    NetworkRun run(graph, plan_, machine_, RandomInputs(graph, 1));
    std::optional<NetworkRun> untuned;
    if (!plan_path_.empty()) {
      const Plan plan = HeuristicPlan(graph, machine_.cpu, machine_.threads);
      untuned.emplace(graph, plan, machine_, RandomInputs(graph, 1));
    }
    const OurNetworks ours{run, untuned ? &*untuned : nullptr};
    DuelOptions options = NetworkDuel(std::max(kNetworkSeconds, seconds_), machine_.threads, plan_.placement);
    options.stop = &InterruptFlag();
    report.details().Fact("read_bytes_per_second", "", {MemoryReadBandwidth(machine_), "memory reads"});
    AddNetworkBench(report, plan_, BenchNetwork(graph, ours, choose, machine_.cpu, options));
  }

  static constexpr double kNetworkSeconds = 4;  // at least
  TargetOptions target_;
  MachineOptions machine_options_;
  std::string plan_path_, log_path_, csv_path_, save_path_, against_, onnxruntime_, conditions_ = "auto";
  double seconds_ = 0.5, fail_below_ = 0;
  bool transforms_ = false, json_ = false;

  Machine machine_;
  AccuracyLimits accuracy_;
  double peak_ = 0;
  std::vector<Record> records_;
  Plan plan_;
};

}  // namespace

std::unique_ptr<Command> MakeBenchCommand() { return std::make_unique<BenchCommand>(); }

}  // namespace tilesmith
