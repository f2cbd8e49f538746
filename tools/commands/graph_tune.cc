#include "tools/commands/graph_tune.h"

#include <fmt/format.h>

#include "graph_tuner/candidates.h"
#include "graph_tuner/costs.h"
#include "graph_tuner/graph_tune.h"
#include "graph_tuner/plan_file.h"
#include "layouts/base/error.h"
#include "tools/cli/accuracy.h"
#include "tools/cli/model.h"
#include "tools/cli/progress.h"
#include "tools/cli/records.h"
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
    DeclareModelOptions(args, &model_);
    args.Text("--log", &log_path_, "Tuning log, as `tilesmith tune` writes it");
    args.Text("-o,--output", &plan_path_, "Plan to write");
    std::vector<std::string> solvers;
    for (const Solver& solver : Solvers()) solvers.emplace_back(solver.name);
    args.Choice("--solver", &options_.solver, solvers, fmt::format("Default {}", options_.solver));
    args.Text("--costs", &costs_path_,
              "Measured costs of other ops and of transforms; read and extended (default: beside the log)");
    args.Flag("--interpolate-costs", &interpolate_,
              "Estimate transforms between two sizes that were measured, instead of measuring them");
    args.Flag("--any-machine", &any_machine_,
              "Believe the log's times of other machines and thread counts as well");
    args.Flag("--default-schedules", &options_.allow_defaults,
              "Convolutions the log lacks get their untuned default schedule");
    args.Flag("--no-fusion", &no_fusion_,
              "Compute every layer by itself, whatever fused records the log has");
    args.Choice("--input-layout", &input_layout_, {"NCHW", "NHWC"}, "Of the network's inputs (default NCHW)");
    args.Choice("--output-layout", &output_layout_, {"NCHW", "NHWC"},
                "Wanted of the network's outputs (default NCHW)");
    DeclareAccuracy(args, &options_.accuracy);
    DeclareMachineOptions(args, &machine_options_);
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    if (plan_path_.empty()) throw Error(ErrorCode::kUsage, "-o PLAN is required");
    if (log_path_.empty() && !options_.allow_defaults) {
      throw Error(ErrorCode::kUsage, "--log LOG is required (or --default-schedules, to do without tuning)");
    }
    const Machine machine = OpenMachine(machine_options_);
    const Graph graph = LoadModel(model_);
    std::vector<Record> records = log_path_.empty() ? std::vector<Record>() : LoadRecords(log_path_);
    if (any_machine_) BelieveForeignRecords(records, machine);
    const PinnedTeam team(machine);
    const GraphTuneResult result = Solve(graph, records, machine);
    WritePlan(plan_path_, result.plan);
    NetworkRun run(graph, result.plan, machine, RandomInputs(graph, 1));
    Print(result, run.Time(5, kRunSeconds));
    return 0;
  }

 private:
  GraphTuneResult Solve(const Graph& graph, const std::vector<Record>& records, const Machine& machine) {
    if (costs_path_.empty() && !log_path_.empty()) costs_path_ = CostsPathFor(log_path_);
    std::vector<std::string> warnings;
    const auto costs = MeasuredCosts(machine.cpu, machine.threads, {costs_path_, interpolate_}, &warnings);
    ProgressLine progress;
    for (const std::string& warning : warnings) progress.Say(warning);
    double asked = NowSeconds();
    options_.cpu = machine.cpu;
    options_.threads = machine.threads;
    options_.model = model_.model;
    options_.fusion = !no_fusion_;
    options_.ends = {Layout::Parse(input_layout_), Layout::Parse(output_layout_)};
    options_.progress = [&](size_t done, size_t total) {
      progress.Show(fmt::format("costs of ops and transforms {}/{}", done, total));
      asked = NowSeconds();
    };
    const std::vector<Record> accepted = AcceptedRecords(options_.accuracy, records);
    for (const auto& [workload, choices] : FindCandidates(graph, accepted, machine.cpu, machine.threads)) {
      candidates_ += int64_t(choices.size());
    }
    GraphTuneResult result = GraphTune(graph, records, *costs, options_);
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
    int64_t interpolated = 0;
    for (const TransformPlan& transform : plan.transforms) {
      transform_seconds += transform.predicted_seconds;
      interpolated += transform.interpolated;
    }

    Report report;
    report.Fact("network", "network", TextCell(plan.network));
    report.Fact("convs", "convolutions", CountCell(convs));
    report.Fact("fused", "fused into convolutions", CountCell(fused));
    if (unmeasured > 0) report.Fact("unmeasured", "  untuned", CountCell(unmeasured));
    report.Fact("conv_seconds", "  predicted ms", MillisecondsCell(conv_seconds));
    report.Fact("transforms", "transforms", CountCell(int64_t(plan.transforms.size())));
    report.Fact("transform_seconds", "  predicted ms", MillisecondsCell(transform_seconds));
    if (interpolated > 0) report.Fact("interpolated", "  of them interpolated", CountCell(interpolated));
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

  ModelOptions model_;
  MachineOptions machine_options_;
  GraphTuneOptions options_;
  std::string log_path_, plan_path_, costs_path_, input_layout_ = "NCHW", output_layout_ = "NCHW";
  bool interpolate_ = false, any_machine_ = false, no_fusion_ = false, json_ = false;
  double solve_seconds_ = 0;
  int64_t candidates_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeGraphTuneCommand() { return std::make_unique<GraphTuneCommand>(); }

}  // namespace tilesmith
