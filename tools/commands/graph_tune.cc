#include "graph_tuner/problem/graph_tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/refine/baselines.h"
#include "graph_tuner/refine/config_variants.h"
#include "graph_tuner/refine/prediction_loop.h"
#include "graph_tuner/refine/template_rivals.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "layouts/measure/clock.h"
#include "tools/cli/graph_tuning.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/report.h"
#include "tools/commands/commands.h"
#include "tools/network/baseline_runs.h"
#include "tools/network/plan_runs.h"
#include "tools/network/prediction_report.h"
#include "tools/peers/onnx_runtime.h"
#include "tools/peers/output_check.h"

namespace tilesmith {
namespace {

// What is tuned, and with what.
struct Session {
  const Machine& machine;
  const Graph& graph;
  const std::vector<Record>& log;
  CostSource& costs;
  StageProgress& stages;
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
    DeclareModelOptions(args, &arguments_.model);
    args.Text("-o,--output", &plan_path_, "Plan to write");
    DeclareGraphTuning(args, &arguments_);
    args.NonNegative(
        "--rounds", &rounds_,
        "Plans to run at most, learning from each (default 3; 0: costs stay as the log has them)");
    args.Duration("--time", &seconds_, "For each plan and each baseline that is run (default 1s)");
    args.Positive("--max-weights", &max_weights_,
                  "Packed weights of all convolutions in MiB, at most; Winograd's and Strassen's are larger "
                  "than plain ones (default: no limit)");
    args.Flag("--no-baselines", &no_baselines_, "Do not run the baselines");
    args.Flag("--variants", &variants_, "Try the log's next fastest configs in the network, too");
    args.Flag("--check", &check_,
              "Compare outputs of the plan and the baselines with ONNX Runtime's, or without it the "
              "reference's; exit 5 when they differ");
    args.Text("--onnxruntime", &onnxruntime_,
              "ONNX Runtime's library (default: what tools/fetch-peers fetched)");
    args.Flag("--nodes", &nodes_, "Print what was predicted and measured of every larger node");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    if (plan_path_.empty()) throw Error(ErrorCode::kUsage, "-o PLAN is required");
    RequireWritable(plan_path_);
    CheckGraphTuning(arguments_);
    const Machine machine = OpenMachine(arguments_.machine);
    const Graph graph = LoadModel(arguments_.model);
    const std::vector<Record> records = LoadTuningLog(arguments_, machine);
    const PinnedTeam team(machine);
    CatchInterrupts();
    ProgressLine progress;
    const auto costs = OpenCosts(arguments_, machine, progress);
    options_ = TuningOptions(arguments_, machine, progress);
    if (max_weights_ > 0) max_weight_bytes_ = max_weights_ << 20;
    StageProgress stages(progress, seconds_);
    CheckAccuracyLimits(options_.accuracy);
    const Session session{machine, graph, records, *costs, stages};

    const RefinedPlan refined = RefineOrKeep(session);
    Report report;
    AddFacts(report, refined);
    if (!refined.rounds.empty()) report.AddTable(RoundsTable(refined));
    AddDifferences(report, session, refined);
    if (!no_baselines_) report.AddTable(BaselineTable(baseline_runs_, refined.plan, refined.check.seconds));
    progress.Clear();
    if (!check_) {
      report.Print(json_);
      return 0;
    }
    const std::vector<PlanToCheck> plans = PlansToCheck(refined.plan);
    OutputCheck check;
    PrintIfInterrupted(report, json_, [&] {
      check = CheckOutputs(arguments_.model, graph, plans, machine, FindOnnxRuntime(onnxruntime_));
    });
    AddOutputCheck(report, plans, check);
    report.Print(json_);
    RequireAlike(plans, check);
    return 0;
  }

 private:
  // Who interrupts it keeps the fastest of the plans that had run.
  RefinedPlan RefineOrKeep(const Session& session) {
    std::optional<RefinedPlan> refined;
    if (UnlessInterrupted([&] { refined = Refine(session); })) return *std::move(refined);
    if (!fastest_) throw Error(ErrorCode::kInterrupted, "interrupted before the first plan had run");
    WritePlan(plan_path_, *fastest_);
    throw Error(ErrorCode::kInterrupted,
                fmt::format("interrupted; the fastest plan so far is in {}", plan_path_));
  }

  RefinedPlan Refine(const Session& session) {
    ExpectRuns(session, kTemplateRivals + (no_baselines_ ? 0 : int(Baselines().size())));
    const NetworkProblem problem(session.graph, session.log, session.costs, options_);
    candidates_ = problem.UsableRecords();
    PredictionLoop loop;
    loop.rounds = int(rounds_);
    loop.solve = [&](const Corrections& corrections) {
      const double began = NowSeconds();
      solved_ = GraphTune(problem, corrections, max_weight_bytes_);
      solve_seconds_ = NowSeconds() - began;
      return solved_.plan;
    };
    loop.measure = [&](const std::vector<const Plan*>& plans) {
      session.stages.Begin(plans.size() == 1 ? "running the plan" : "running plans by turns",
                           int(plans.size()));
      std::vector<PlanMeasurement> measurements =
          MeasurePlans(session.graph, plans, session.machine, seconds_, best_);
      best_ = BetterOf(best_, measurements.front().placement);
      const auto fastest = std::ranges::min_element(measurements, {}, &PlanMeasurement::seconds);
      fastest_ = *plans[size_t(fastest - measurements.begin())];
      return measurements;
    };
    loop.compare = [&](const std::vector<const Plan*>& plans) {
      session.stages.Begin("comparing the fastest plans", kPlanDuels * int(plans.size()));
      const Duel duel = ComparePlans(session.graph, plans, session.machine, seconds_, best_);
      std::vector<double> ratios;
      for (size_t i = 0; i < plans.size(); ++i) ratios.push_back(RatioOf(duel.rounds, 0, i).median);
      return ratios;
    };
    loop.rivals = [&] {
      std::vector<RivalPlan> rivals = TemplateRivals(problem, solved_.plan, max_weight_bytes_);
      if (!no_baselines_) baselines_ = PlanBaselines(problem, max_weight_bytes_);
      for (const PlannedBaseline& baseline : baselines_)
        if (baseline.plan) rivals.push_back({baseline.name, *baseline.plan});
      ExpectRuns(session, int(rivals.size()));
      return rivals;
    };
    // Written before it is challenged: who kills it keeps the plan.
    loop.challenge = [&](const RefinedPlan& refined) {
      WritePlan(plan_path_, refined.plan);
      fastest_ = refined.plan;
      if (no_baselines_) return std::optional<Plan>();
      if (baselines_.empty()) baselines_ = PlanBaselines(problem, max_weight_bytes_);
      return FasterBaseline(session, refined);
    };
    if (variants_) {
      loop.variants = [&](const Plan& plan) {
        const std::vector<Record> accepted = AcceptedRecords(options_.accuracy, session.log);
        return ConfigVariants(session.graph, plan, accepted, session.machine.cpu);
      };
    }
    return RefinePlan(session.graph, session.costs, loop);
  }

  // Counts every solution so far and the rivals in each round and once more, the plan, and the baselines.
  void ExpectRuns(const Session& session, int rivals) const {
    int runs = rounds_ > 0 ? 2 : 1;
    for (int round = 1; round <= int(rounds_); ++round) runs += round + rivals;
    if (rounds_ > 0) runs += int(rounds_) + rivals;
    if (rounds_ > 0 && variants_) runs += 1 + VariantOptions().variants + int(rounds_) + rivals + 1;
    if (rounds_ > 0) runs += kPlanDuels * (int(rounds_) + rivals > 1 ? kCompared : 0);
    if (!no_baselines_) runs += kPlanDuels * (1 + rivals);
    session.stages.Expect(runs);
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

  std::vector<PlanToCheck> PlansToCheck(const Plan& plan) const {
    std::vector<PlanToCheck> plans = {{"the plan", &plan, ""}};
    for (const PlannedBaseline& baseline : baselines_)
      plans.push_back({baseline.name, baseline.plan ? &*baseline.plan : nullptr, baseline.note});
    return plans;
  }

  // Runs the baselines beside the plan.
  std::optional<Plan> FasterBaseline(const Session& session, const RefinedPlan& refined) {
    std::vector<PlannedBaseline> baselines = baselines_;
    DropPlan(refined.plan, baselines);
    int runs = 1;
    for (PlannedBaseline& baseline : baselines) {
      if (!baseline.plan) continue;
      ++runs;
      PricePlan(session.graph, session.costs, *baseline.plan, refined.plan.corrections);
    }
    session.stages.Begin("running the baselines", kPlanDuels * runs);
    baseline_runs_ = RunBaselines(session.graph, refined.plan, session.machine, baselines, seconds_);
    return FasterThanThePlan(baseline_runs_);
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
    AddPlacement(report, "", refined.check.placement, plan.placement);
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
    return fmt::format("of {}, {}", refined.rounds[refined.round].name,
                       refined.settled ? "settled" : "not settled");
  }

  static constexpr int kCompared = 3, kTemplateRivals = 2;  // as guesses

  GraphTuningArguments arguments_;
  GraphTuneOptions options_;
  std::optional<int64_t> max_weight_bytes_;
  std::string plan_path_;
  int64_t rounds_ = 3, max_weights_ = 0;  // 0: no limit
  double seconds_ = 1;
  std::string onnxruntime_;
  bool no_baselines_ = false, variants_ = false, check_ = false, nodes_ = false, json_ = false;

  GraphTuneResult solved_;  // the last one, for its size
  std::vector<PlannedBaseline> baselines_;
  std::vector<BaselineRun> baseline_runs_;  // beside the plan
  std::optional<Plan> fastest_;             // when it was last looked for
  double solve_seconds_ = 0;                // of the last solution
  CorePlacement best_;                      // that a measurement has seen
  int64_t candidates_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeGraphTuneCommand() { return std::make_unique<GraphTuneCommand>(); }

}  // namespace tilesmith
