#include "tools/commands/graph_tune.h"

#include <fmt/format.h>

#include "graph_tuner/candidates.h"
#include "graph_tuner/graph_tune.h"
#include "graph_tuner/plan_file.h"
#include "layouts/base/error.h"
#include "tools/cli/graph_tuning.h"
#include "tools/cli/report.h"
#include "tools/network/network_run.h"

namespace tilesmith {
namespace {

constexpr double kRunSeconds = 1;  // of the finished plan

class GraphTuneCommand : public Command {
 public:
  std::string_view Name() const override { return "graph-tune"; }
  std::string_view Purpose() const override {
    return "Choose schedule and layouts of every node of a network, from a tuning log";
  }
  std::string_view Examples() const override {
    return "tilesmith graph-tune resnet50 --log resnet50.jsonl -o resnet50.plan.jsonl\n"
           "tilesmith graph-tune squeezenet1_1 --default-schedules -o plan.jsonl";
  }
  void Declare(Args& args) override {
    DeclareModelOptions(args, &arguments_.model);
    args.Text("-o,--output", &plan_path_, "Plan to write");
    DeclareGraphTuning(args, &arguments_);
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    if (plan_path_.empty()) throw Error(ErrorCode::kUsage, "-o PLAN is required");
    CheckGraphTuning(arguments_);
    const Machine machine = OpenMachine(arguments_.machine);
    const Graph graph = LoadModel(arguments_.model);
    const std::vector<Record> records = LoadTuningLog(arguments_);
    const PinnedTeam team(machine);
    const GraphTuneResult result = Solve(graph, records, machine);
    WritePlan(plan_path_, result.plan);
    NetworkRun run(graph, result.plan, machine, RandomInputs(graph, 1));
    Print(result, run.Time(5, kRunSeconds));
    return 0;
  }

 private:
  GraphTuneResult Solve(const Graph& graph, const std::vector<Record>& records, const Machine& machine) {
    ProgressLine progress;
    const auto costs = OpenCosts(arguments_, machine, progress);
    GraphTuneOptions options = TuningOptions(arguments_, machine, progress);
    double asked = NowSeconds();
    options.progress = [&asked, show = options.progress](size_t done, size_t total) {
      show(done, total);
      asked = NowSeconds();
    };
    const std::vector<Record> accepted = AcceptedRecords(options.accuracy, records);
    for (const auto& [workload, choices] : FindCandidates(graph, accepted, machine.cpu, machine.threads)) {
      candidates_ += int64_t(choices.size());
    }
    GraphTuneResult result = GraphTune(graph, records, *costs, options);
    solve_seconds_ = NowSeconds() - asked;
    return result;
  }

  void Print(const GraphTuneResult& result, const RunTimes& times) const {
    const Plan& plan = result.plan;
    int64_t convs = 0, unmeasured = 0, fused = 0;
    double conv_seconds = 0, transform_seconds = 0;
    for (const NodePlan& node : plan.nodes) {
      if (!node.fused_into.empty()) ++fused;
      if (node.op_type == "Conv") ++convs;
      if (!node.record) continue;
      conv_seconds += node.predicted_seconds;
      if (node.record->seconds == 0) ++unmeasured;
    }
    for (const TransformPlan& transform : plan.transforms) transform_seconds += transform.predicted_seconds;

    Report report;
    report.Fact("network", "network", TextCell(plan.network));
    report.Fact("convs", "convolutions", CountCell(convs));
    report.Fact("fused", "fused into convolutions", CountCell(fused));
    if (unmeasured > 0) report.Fact("unmeasured", "  untuned", CountCell(unmeasured));
    report.Fact("conv_seconds", "  predicted ms", MillisecondsCell(conv_seconds));
    report.Fact("transforms", "transforms", CountCell(int64_t(plan.transforms.size())));
    report.Fact("transform_seconds", "  predicted ms", MillisecondsCell(transform_seconds));
    report.Fact("other_seconds", "other ops ms",
                MillisecondsCell(plan.predicted_seconds - conv_seconds - transform_seconds));
    report.Fact("solver", "solver", TextCell(plan.solver));
    report.Fact("certificate", "certificate", TextCell(plan.certificate));
    report.Fact("candidates", "candidates", CountCell(candidates_));
    report.Fact("variables", "variables", CountCell(int64_t(result.variables)));
    report.Fact("edges", "edges", CountCell(int64_t(result.edges)));
    report.Fact("induced_width", "induced width", CountCell(result.stats.induced_width));
    report.Fact("solve_seconds", "solve ms", MillisecondsCell(solve_seconds_));
    report.Fact("predicted_seconds", "predicted ms", MillisecondsCell(plan.predicted_seconds));
    report.Fact("measured_seconds", "measured ms", MillisecondsCell(times.median));
    report.Fact("gap", "gap",
                unmeasured > 0
                    ? NoCell()
                    : Cell{times.median / plan.predicted_seconds - 1,
                           fmt::format("{:+.1f}%", (times.median / plan.predicted_seconds - 1) * 100)});
    report.Fact("plan", "plan", TextCell(plan_path_));
    report.Print(json_);
  }

  GraphTuningArguments arguments_;
  std::string plan_path_;
  bool json_ = false;
  double solve_seconds_ = 0;
  int64_t candidates_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeGraphTuneCommand() { return std::make_unique<GraphTuneCommand>(); }

}  // namespace tilesmith
