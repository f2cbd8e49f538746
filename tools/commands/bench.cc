#include "tools/commands/bench.h"

#include <fmt/format.h>

#include <map>

#include "layouts/base/error.h"
#include "templates/fma_peak.h"
#include "tools/bench/bench_report.h"
#include "tools/bench/conv_bench.h"
#include "tools/bench/transform_bench.h"
#include "tools/cli/conditions.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/progress.h"
#include "tools/cli/records.h"
#include "tools/cli/report.h"
#include "tools/cli/targets.h"
#include "tools/network/network_bench.h"
#include "tools/network/network_run.h"
#include "tools/network/profile_report.h"
#include "tuner/best_records.h"

namespace tilesmith {
namespace {

class BenchCommand : public Command {
 public:
  std::string_view Name() const override { return "bench"; }
  std::string_view Purpose() const override {
    return "Time convolutions and networks beside oneDNN, alternating in one process";
  }
  std::string_view Examples() const override {
    return "tilesmith bench resnet50 --plan resnet50.plan.jsonl\n"
           "tilesmith bench --suite tools/suites/dense.txt --log dense.jsonl --against direct\n"
           "tilesmith bench ic64ih56oc64oh56kh3ph1 --time 2s\n"
           "tilesmith bench --transforms";
  }
  void Declare(Args& args) override {
    DeclareTargets(args, &target_);
    args.Text("--plan", &plan_path_, "Schedules from graph-tune (MODEL only)");
    args.Text("--log", &log_path_, "Schedules from a tuning log: the fastest of each convolution");
    args.Choice("--against", &against_, {"best", "direct"},
                "oneDNN's fastest algorithm (default), or its direct one");
    args.Duration("--time", &seconds_, "For each convolution (default 500ms)");
    args.Real("--fail-below", &fail_below_, "Exit with 6 when the geometric mean ratio is below this");
    args.Text("--csv", &csv_path_, "Write the table as CSV");
    args.Flag("--transforms", &transforms_, "Layout transforms beside memcpy, instead");
    DeclareConditions(args, &conditions_);
    DeclareMachineOptions(args, &machine_options_);
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    machine_ = OpenMachine(machine_options_);
    if (transforms_) return RunTransforms();
    const Targets targets = LoadTargets(target_);
    if (!plan_path_.empty() && !targets.is_network()) {
      throw Error(ErrorCode::kUsage, "--plan needs a MODEL; give --log for workloads");
    }
    cold_ = ColdWeights(conditions_, targets.tasks, targets.is_network(), machine_.cpu);
    if (targets.is_network()) plan_ = LoadPlan(plan_path_, *targets.graph, machine_, false);
    FindSchedules();
    const PinnedTeam team(machine_);
    CatchInterrupts();
    const double peak = MeasureFmaPeak(machine_.cpu, machine_.threads);
    const std::vector<BenchRow> rows = Measure(targets.tasks);

    Report report;
    report.Fact("threads", "threads", CountCell(machine_.threads));
    report.Fact("weights", "weights", TextCell(cold_ ? "cold" : "warm"));
    report.Fact("peak_flops", "FMA peak", {peak, fmt::format("{:.0f} GFLOP/s", peak * 1e-9)});
    report.Fact("onednn", "oneDNN", TextCell(OneDnnVersion()));
    const BenchTotals totals = AddBenchRows(report, rows, {against_ == "direct", peak});
    if (targets.is_network() && !Interrupted()) AddNetwork(report, *targets.graph, rows);
    report.Print(json_);
    if (!csv_path_.empty()) WriteTextFile(csv_path_, BenchTable(rows, {against_ == "direct", peak}).ToCsv());
    if (Interrupted()) return int(ErrorCode::kInterrupted);
    if (fail_below_ > 0 && !(totals.geomean >= fail_below_)) {
      throw Error(ErrorCode::kTooSlow,
                  fmt::format("the geometric mean ratio {:.3f} is below {}", totals.geomean, fail_below_));
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
    if (!csv_path_.empty()) WriteTextFile(csv_path_, table.ToCsv());
    return 0;
  }

  // By canonical workload. A plan may schedule one workload differently in different places: the first
  // counts.
  void FindSchedules() {
    if (!log_path_.empty()) {
      const auto records = LoadRecords(log_path_);
      for (const auto& [workload, by_layouts] : BestRecords(records, TargetOf(machine_.cpu))) {
        const Record* best = nullptr;
        for (const auto& [layouts, record] : by_layouts) {
          if (record.conditions.threads != machine_.threads) continue;
          const bool fits = record.conditions.cold_weights == cold_;
          const bool best_fits = best != nullptr && best->conditions.cold_weights == cold_;
          if (best == nullptr || fits > best_fits || (fits == best_fits && record.seconds < best->seconds)) {
            best = &record;
          }
        }
        if (best != nullptr) schedules_[workload] = {best->template_name, best->config, "log"};
      }
    }
    if (plan_path_.empty()) return;
    for (const NodePlan& node : plan_.nodes) {
      if (!node.record) continue;
      schedules_.insert({WorkloadToString(node.record->workload),
                         {node.record->template_name, node.record->config, "plan"}});
    }
  }

  std::vector<BenchRow> Measure(const std::vector<ConvTask>& tasks) {
    std::vector<BenchRow> rows;
    ProgressLine progress;
    for (const ConvTask& task : tasks) {
      if (Interrupted()) break;
      const std::string key = WorkloadToString(task.workload);
      progress.Show(fmt::format("{}/{} {}", rows.size() + 1, tasks.size(), key));
      const auto found = schedules_.find(key);
      const Schedule schedule =
          found != schedules_.end() ? found->second : DefaultSchedule(task.workload, machine_.cpu);
      rows.push_back({task, BenchConv(task.workload, schedule, machine_, {seconds_, cold_})});
    }
    return rows;
  }

  void AddNetwork(Report& report, const Graph& graph, const std::vector<BenchRow>& rows) {
    constexpr double kSeconds = 2;
    std::map<std::string, OneDnnAlgorithm> fastest;
    for (const BenchRow& row : rows) {
      if (const OneDnnSide* side = row.bench.Fastest()) {
        fastest[WorkloadToString(row.bench.workload)] = side->algorithm;
      }
    }
    const auto choose = [&](const ConvWorkload& workload) {
      const auto found = fastest.find(WorkloadToString(workload));
      return found == fastest.end() ? OneDnnAlgorithm::kAuto : found->second;
    };
    NetworkRun run(graph, plan_, machine_, RandomInputs(graph, 1));
    AddNetworkBench(report, plan_, BenchNetwork(graph, run, choose, {std::max(kSeconds, seconds_), false}));
  }

  TargetOptions target_;
  MachineOptions machine_options_;
  std::string plan_path_, log_path_, csv_path_, against_ = "best", conditions_ = "auto";
  double seconds_ = 0.5, fail_below_ = 0;
  bool transforms_ = false, json_ = false;

  Machine machine_;
  bool cold_ = false;
  Plan plan_;
  std::map<std::string, Schedule> schedules_;
};

}  // namespace

std::unique_ptr<Command> MakeBenchCommand() { return std::make_unique<BenchCommand>(); }

}  // namespace tilesmith
