#include "tools/commands/graph_tune.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph_tuner/baselines.h"
#include "graph_tuner/candidates.h"
#include "graph_tuner/costs.h"
#include "graph_tuner/graph_tune.h"
#include "graph_tuner/plan_file.h"
#include "graph_tuner/prediction_loop.h"
#include "graph_tuner/price_plan.h"
#include "layouts/base/error.h"
#include "tools/cli/accuracy.h"
#include "tools/cli/model.h"
#include "tools/cli/progress.h"
#include "tools/cli/records.h"
#include "tools/cli/report.h"
#include "tools/network/baseline_runs.h"
#include "tools/network/plan_runs.h"
#include "tools/network/prediction_report.h"

namespace tilesmith {
namespace {

// What is tuned, and with what.
struct Session {
  const Machine& machine;
  const Graph& graph;
  const std::vector<Record>& records;
  CostSource& costs;
  StageProgress& stages;

  NetworkRun Run(const Plan& plan) const { return {graph, plan, machine, RandomInputs(graph, 1)}; }
};

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
    args.NonNegative(
        "--rounds", &rounds_,
        "Plans to run at most, learning from each (default 3; 0: costs stay as the log has them)");
    args.Duration("--time", &seconds_, "For each plan and each baseline that is run (default 1s)");
    args.Flag("--no-baselines", &no_baselines_, "Do not run the baselines");
    args.Flag("--nodes", &nodes_, "Print what was predicted and measured of every larger node");
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
    if (costs_path_.empty() && !log_path_.empty()) costs_path_ = CostsPathFor(log_path_);
    std::vector<std::string> warnings;
    const auto costs = MeasuredCosts(machine.cpu, machine.threads, {costs_path_, interpolate_}, &warnings);
    ProgressLine progress;
    for (const std::string& warning : warnings) progress.Say(warning);
    SetOptions(machine, progress);
    StageProgress stages(progress, seconds_);
    const std::vector<Record> usable = UsableRecords(graph, records);
    const Session session{machine, graph, usable, *costs, stages};

    const RefinedPlan refined = Refine(session);
    WritePlan(plan_path_, refined.plan);
    Report report;
    AddFacts(report, refined);
    if (!refined.rounds.empty()) report.AddTable(RoundsTable(refined));
    AddDifferences(report, session, refined);
    if (!no_baselines_) AddBaselines(report, session, refined);
    progress.Clear();
    report.Print(json_);
    return 0;
  }

 private:
  void SetOptions(const Machine& machine, ProgressLine& progress) {
    options_.cpu = machine.cpu;
    options_.threads = machine.threads;
    options_.model = model_.model;
    options_.fusion = !no_fusion_;
    options_.ends = {Layout::Parse(input_layout_), Layout::Parse(output_layout_)};
    options_.progress = [this, &progress](size_t done, size_t total) {
      constexpr double kWorthMentioning = 0.2;  // costs that are known already take milliseconds
      asked_ = NowSeconds();
      if (done == 0) first_asked_ = asked_;
      if (asked_ - first_asked_ < kWorthMentioning) return;
      progress.Show(fmt::format("costs of ops and transforms {}/{}", done, total));
    };
  }

  // Those of a log that can be chosen: looked for once, not in every solution.
  std::vector<Record> UsableRecords(const Graph& graph, const std::vector<Record>& records) {
    CheckAccuracyLimits(options_.accuracy);
    std::vector<Record> usable;
    const std::vector<Record> accepted = AcceptedRecords(options_.accuracy, records);
    for (auto& [workload, choices] : FindCandidates(graph, accepted, options_.cpu, options_.threads)) {
      usable.insert(usable.end(), choices.begin(), choices.end());
    }
    candidates_ = int64_t(usable.size());
    return usable;
  }

  RefinedPlan Refine(const Session& session) {
    session.stages.Expect(int(rounds_) + 1 + (no_baselines_ ? 0 : int(Baselines(options_).size())));
    PredictionLoop loop;
    loop.rounds = int(rounds_);
    loop.solve = [&](const Corrections& corrections) {
      options_.corrections = corrections;
      solved_ = GraphTune(session.graph, session.records, session.costs, options_);
      solve_seconds_ = NowSeconds() - asked_;
      return solved_.plan;
    };
    loop.measure = [&](const Plan& plan) {
      session.stages.Begin("running the plan");
      NetworkRun run = session.Run(plan);
      return MeasurePlan(run, seconds_);
    };
    loop.is_faster = [&](const Plan& a, const Plan& b) {
      session.stages.Begin("comparing plans");
      NetworkRun run_a = session.Run(a), run_b = session.Run(b);
      return RatioOf(ComparePlans(run_a, run_b, seconds_), 0, 1).low > 1;
    };
    if (!no_baselines_) {
      loop.rivals = [&] {
        PlanTheBaselines(session);
        std::vector<RivalPlan> rivals;
        for (const PlannedBaseline& baseline : baselines_)
          if (baseline.plan) rivals.push_back({baseline.name, *baseline.plan});
        session.stages.Expect(3 * int(rivals.size()) + int(rounds_));
        return rivals;
      };
    }
    return RefinePlan(session.graph, session.costs, loop);
  }

  void AddDifferences(Report& report, const Session& session, const RefinedPlan& refined) const {
    const std::vector<StepDifference> steps =
        ExplainSteps(session.graph, refined.plan, session.costs, refined.check, session.machine.cpu);
    report.AddTable(DifferencesTable(SumDifferences(steps, refined.check)));
    HeavySteps heavy = FindHeavySteps(steps, refined.check);
    if (nodes_) report.AddTable(std::move(heavy.table));
    report.Fact("heavy_nodes", "nodes above 2% of the run", CountCell(heavy.count));
    report.Fact("heavy_nodes_predicted", "  measured within 15%", CountCell(heavy.predicted_well));
  }

  // By the log's figures, as those would choose who do not run networks to correct them.
  void PlanTheBaselines(const Session& session) {
    GraphTuneOptions uncorrected = options_;
    uncorrected.corrections = {};
    baselines_ = PlanBaselines(session.graph, session.records, session.costs, uncorrected);
  }

  void AddBaselines(Report& report, const Session& session, const RefinedPlan& refined) {
    if (baselines_.empty()) PlanTheBaselines(session);
    DropPlan(refined.plan, baselines_);
    int runs_left = 0;
    for (PlannedBaseline& baseline : baselines_) {
      if (!baseline.plan) continue;
      ++runs_left;
      PricePlan(session.graph, session.costs, *baseline.plan, refined.corrections);
    }
    session.stages.Expect(runs_left);
    const BaselineOptions options{seconds_,
                                  [&](const std::string& name) { session.stages.Begin("running " + name); }};
    const std::vector<BaselineRun> runs =
        RunBaselines(session.graph, refined.plan, session.machine, baselines_, options);
    report.AddTable(BaselineTable(runs, refined.plan, refined.check.seconds));
  }

  void AddFacts(Report& report, const RefinedPlan& refined) const {
    const Plan& plan = refined.plan;
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
    report.Fact("variables", "variables", CountCell(int64_t(solved_.variables)));
    report.Fact("edges", "edges", CountCell(int64_t(solved_.edges)));
    report.Fact("induced_width", "induced width", CountCell(solved_.stats.induced_width));
    report.Fact("solve_seconds", "solve ms", MillisecondsCell(solve_seconds_));
    report.Fact("predicted_seconds", "predicted ms", MillisecondsCell(plan.predicted_seconds));
    const double measured = refined.check.seconds;
    report.Fact("measured_seconds", "measured ms", MillisecondsCell(measured));
    const bool predicted = !refined.rounds.empty() || unmeasured == 0;
    report.Fact("gap", "gap",
                predicted ? Cell{measured / plan.predicted_seconds - 1,
                                 fmt::format("{:+.1f}%", (measured / plan.predicted_seconds - 1) * 100)}
                          : NoCell());
    report.Fact("prediction", "prediction", TextCell(Origin(refined)));
    report.Fact("plan", "plan", TextCell(plan_path_));
  }

  // Where the predicted figures come from.
  static std::string Origin(const RefinedPlan& refined) {
    if (refined.rounds.empty()) return "from the log";
    return fmt::format("as run for {}, {}", refined.rounds[refined.round].name,
                       refined.settled ? "settled" : "not settled");
  }

  ModelOptions model_;
  MachineOptions machine_options_;
  GraphTuneOptions options_;
  std::string log_path_, plan_path_, costs_path_, input_layout_ = "NCHW", output_layout_ = "NCHW";
  int64_t rounds_ = 3;
  double seconds_ = 1;
  bool interpolate_ = false, any_machine_ = false, no_fusion_ = false;
  bool no_baselines_ = false, nodes_ = false, json_ = false;

  GraphTuneResult solved_;  // the last one, for its size
  std::vector<PlannedBaseline> baselines_;
  double first_asked_ = 0;    // when the last solution's costs were asked for
  double asked_ = 0;          // when the last of them was known
  double solve_seconds_ = 0;  // of the last solution
  int64_t candidates_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeGraphTuneCommand() { return std::make_unique<GraphTuneCommand>(); }

}  // namespace tilesmith
