#include <fmt/format.h>

#include <limits>
#include <utility>

#include "graph_tuner/planner/network_types.h"
#include "layouts/base/error.h"
#include "ops/conv/conv.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/cli/streams.h"
#include "tools/commands/commands.h"
#include "tools/commands/graph_tune_farm.h"
#include "tools/doctor/disturbance.h"
#include "tools/network/prediction_report.h"
#include "tools/network/profile_report.h"
#include "tools/peers/onnx_runtime.h"
#include "tools/peers/output_check.h"
#include "tools/quantize/in_place.h"
#include "tools/report/write_report.h"
#include "tools/tune/graph_tune_model.h"
#include "tools/tune/tune_report.h"

namespace tilesmith {
namespace {

class GraphTuneCommand : public Command {
 public:
  explicit GraphTuneCommand(std::string plan_shown)
      : Command({.name = "graph-tune",
                 .purpose = "Choose schedule and layouts of every node of a network, from a tuning log",
                 .examples = "tilesmith graph-tune resnet50 --log resnet50.jsonl -o resnet50.plan.jsonl\n"
                             "tilesmith graph-tune squeezenet1_1 --default-schedules -o plan.jsonl\n"
                             "tilesmith graph-tune resnet50 --log resnet50.jsonl -o plan.jsonl --farm "
                             "redis://queue:6379/0"}),
        plan_shown_(std::move(plan_shown)) {}
  void Declare(Args& args) override {
    args_ = &args;
    DeclareModelOptions(args, &request_.arguments.model);
    DeclareGraphTuning(args, &request_.arguments);
    DeclareCalibration(args, &request_.arguments.model);
    DeclareFarm(args, &farm_);
    args.Group("Search");
    args.Duration("--time-budget,--for", &request_.time_budget,
                  "For all of it (default 90s); the best plan by then is kept");
    args.NonNegative(
        "--rounds", &request_.rounds,
        "Plans to run at most, learning from each (default 3; 0: costs stay as the log has them)",
        kMaxRounds);
    args.Duration("--time", &request_.seconds,
                  "For each plan and each baseline that is run, at most (default 1s)");
    args.Positive("--max-weights", &max_weights_,
                  "Packed weights of all convolutions in MiB, at most; Winograd's and Strassen's are larger "
                  "than plain ones (default: no limit)");
    args.Real("--max-output-error", &max_output_error_,
              "Of the outputs relative to f32's, such as 0.002, at most: with --precision bf16 or mixed, on "
              "--calibrate's inputs or random ones (default: any)");
    args.Flag("--no-baselines", &no_baselines_, "Do not run the baselines");
    args.Flag("--variants", &request_.variants, "Try the log's next fastest configs in the network, too");
    args.Group("Output");
    args.Text("-o,--output", &request_.plan_path,
              "Plan to write: the best so far, from the first solution on", "PLAN");
    args.Flag("--check", &check_,
              "Compare outputs of the plan and the baselines with ONNX Runtime's, or without it the "
              "reference's; exit 5 when they differ");
    args.Text("--onnxruntime", &onnxruntime_,
              "ONNX Runtime's library, or none (default: what tools/fetch-peers fetched)", "FILE");
    args.Text("--save", &save_path_, "Write what --json prints to this file, too", "FILE");
    args.Text("--report", &report_path_, "Write a page to look at, as `tilesmith report` does", "FILE");
    args.Flag("--nodes", &nodes_, "Print what was predicted and measured of every larger node");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    if (request_.plan_path.empty()) throw Error(ErrorCode::kUsage, "-o PLAN is required");
    const GraphTuningArguments& arguments = request_.arguments;
    const std::vector<std::string> others = {arguments.log_path, arguments.costs_path, arguments.model.model};
    RequireDifferent({request_.plan_path, save_path_, report_path_});
    RequireReplaceable(save_path_, OutputFormat::kJson, others);
    RequireReplaceable(report_path_, OutputFormat::kPage, others);
    request_.baselines = !no_baselines_;
    if (max_weights_ > 0) request_.max_weight_bytes = max_weights_ << 20;
    request_.max_output_error = OutputErrorLimit(max_output_error_);
    CatchInterrupts();
    ProgressLine progress;
    if (SizesToTune(request_.arguments.model).size() > 1 && !(save_path_.empty() && report_path_.empty())) {
      throw Error(ErrorCode::kUsage, "--save and --report are for one size of the inputs");
    }
    if (farm_.wanted() || !farm_.class_name.empty()) return TuneOnFarm(progress);
    if (!check_) args_->RefuseGiven({"--onnxruntime"}, "is for --check");
    GraphTuneModel(request_, SinksOf(progress), [&](const ModelOptions& model, const PlannedNetwork& tuned) {
      progress.Clear();
      Show(model, tuned, progress);
    });
    return 0;
  }

 private:
  // What the worker prints is printed.
  int TuneOnFarm(ProgressLine& progress) const {
    args_->RefuseGiven({"--onnxruntime", "--calibrate", "--target"}, "is not for --farm");
    const FarmGraphTuned tuned = GraphTuneOnFarm({.farm = farm_,
                                                  .arguments = request_.arguments,
                                                  .options = args_->GivenOptions(),
                                                  .plan_path = request_.plan_path,
                                                  .save_path = save_path_,
                                                  .report_path = report_path_},
                                                 SinksOf(progress));
    progress.Clear();
    PrintOut(tuned.output);
    if (tuned.code != ErrorCode{}) throw Error(tuned.code, tuned.error);
    return 0;
  }

  void Show(ModelOptions model, const PlannedNetwork& tuned, ProgressLine& progress) const {
    model.quantization = tuned.refined.plan.quantization;
    Report report;
    AddShapes(report, model);
    AddFacts(report, tuned);
    if (!tuned.refined.rounds.empty()) report.AddTable(RoundsTable(tuned.refined));
    if (!tuned.refined.check.steps.empty()) AddDifferences(report, tuned);
    if (!tuned.baselines.runs.empty()) report.AddTable(BaselineTable(tuned.baselines, tuned.refined.plan));
    if (!tuned.types.empty()) report.AddTable(TypesTable(tuned.types, model.calibration.paths.empty()));
    AddDetails(report.details(), tuned);
    if (!check_ || tuned.stopped) {
      Deliver(report, progress);
      return;
    }
    const PinnedTeam team(tuned.machine);
    const std::vector<PlanToCheck> plans = PlansToCheck(tuned);
    OutputCheck check;
    try {
      check = CheckOutputs(model, tuned.graph, plans, tuned.machine, FindOnnxRuntime(onnxruntime_),
                           &InterruptFlag());
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInterrupted) Deliver(report, progress);
      throw;
    }
    AddOutputCheck(report, plans, check);
    Deliver(report, progress);
    RequireAlike(plans, check);
  }

  static void AddDetails(Report& details, const PlannedNetwork& tuned) {
    AddOrigin(details, tuned.machine->target());
    AddHashes(details, tuned.refined.plan);
    std::vector<StepProfile> steps;
    steps.reserve(tuned.steps.size());
    for (const StepDifference& step : tuned.steps) steps.push_back(step.matched.step);
    details.AddTable(ProfileTable(steps));
  }

  // Where it was interrupted the page does without explanations, for which costs may have to be measured.
  void Deliver(const Report& report, ProgressLine& progress) const {
    report.Print(json_, save_path_);
    if (report_path_.empty()) return;
    const GraphTuningArguments& arguments = request_.arguments;
    ReportRequest page = {.log_path = arguments.log_path,
                          .plan_path = request_.plan_path,
                          .results = {report.ToJson()},
                          .model = arguments.model,
                          .costs_path = arguments.costs_path,
                          .output_path = report_path_};
    if (Interrupted()) page.explain_seconds = 0;
    WriteReport(page, SinksOf(progress));
  }

  void AddDifferences(Report& report, const PlannedNetwork& tuned) const {
    report.AddTable(DifferencesTable(SumDifferences(tuned.steps, tuned.refined.check)));
    HeavySteps heavy = FindHeavySteps(tuned.steps, tuned.refined.check);
    if (nodes_) report.AddTable(std::move(heavy.table));
    report.Fact("heavy_nodes", "nodes above 2% of the run", CountCell(heavy.count));
    report.Fact("heavy_nodes_predicted", "  measured within 15%", CountCell(heavy.predicted_well));
  }

  static std::vector<PlanToCheck> PlansToCheck(const PlannedNetwork& tuned) {
    std::vector<PlanToCheck> plans = {{"the plan", &tuned.refined.plan, ""}};
    for (const PlannedBaseline& baseline : tuned.refined.baselines)
      plans.push_back({baseline.name, baseline.plan ? &*baseline.plan : nullptr, baseline.note});
    return plans;
  }

  // Those of bytes among them, which run without a record as well.
  static bool IsConv(const Graph& graph, const std::string& node) {
    const auto id = graph.Find(node);
    return id && graph.As<ConvolutionOp>(*id) != nullptr;
  }

  void AddFacts(Report& report, const PlannedNetwork& tuned) const {
    const RefinedPlan& refined = tuned.refined;
    const Plan& plan = refined.plan;
    int64_t convs = 0, unmeasured = 0, fused = 0;
    double conv_seconds = 0, transform_seconds = 0;
    for (const NodePlan& node : plan.nodes) {
      const bool is_fused = !node.fused_into.empty(), is_conv = IsConv(tuned.graph, node.node);
      fused += is_fused;
      convs += is_conv;
      if (!node.record && !is_conv) continue;
      conv_seconds += node.predicted_seconds;
      unmeasured += node.record ? node.record->seconds == 0 : !is_fused;
    }
    int64_t interpolated = 0;
    for (const TransformPlan& transform : plan.transforms) {
      transform_seconds += transform.predicted_seconds;
      interpolated += transform.interpolated;
    }

    report.Fact("network", "network", TextCell(plan.network));
    AddCalibration(report, plan.quantization.get());
    report.Fact("convs", "convolutions", CountCell(convs));
    report.Fact("fused", "fused into convolutions", CountCell(fused));
    if (unmeasured > 0) report.Fact("unmeasured", "  untuned", CountCell(unmeasured));
    const auto [predicted_at, prediction] = PredictionFor(plan, refined.check.placement);
    report.Fact("conv_seconds", "  predicted ms", prediction > 0 ? MillisecondsCell(conv_seconds) : NoCell());
    report.Fact("transforms", "transforms", CountCell(static_cast<int64_t>(plan.transforms.size())));
    report.Fact("transform_seconds", "  predicted ms", MillisecondsCell(transform_seconds));
    if (interpolated > 0) report.Fact("interpolated", "  of them interpolated", CountCell(interpolated));
    report.Fact("other_seconds", "other ops ms",
                MillisecondsCell(plan.predicted_seconds - conv_seconds - transform_seconds));
    AddRegions(report, plan);
    report.Fact("solver", "solver", TextCell(plan.solver));
    report.Fact("certificate", "certificate", TextCell(plan.certificate));
    report.Fact("candidates", "candidates", CountCell(tuned.candidates));
    report.Fact("variables", "variables", CountCell(static_cast<int64_t>(refined.solved.variables)));
    report.Fact("edges", "edges", CountCell(static_cast<int64_t>(refined.solved.edges)));
    report.Fact("induced_width", "induced width", CountCell(refined.solved.stats.induced_width));
    report.Fact("solve_seconds", "solve ms", MillisecondsCell(refined.solve_seconds));
    report.Fact("predicted_seconds", "predicted ms", KnownMillisecondsCell(prediction));
    const double measured = refined.check.seconds;
    report.Fact("measured_seconds", "measured ms", KnownMillisecondsCell(measured));
    AddPlacement(report, "", refined.check.placement, predicted_at);
    report.Fact("gap", "gap",
                measured > 0 && prediction > 0 ? ChangeCell(measured / prediction - 1) : NoCell());
    AddErrors(report, tuned, request_.arguments.model.calibration.paths.empty());
    report.Fact("prediction", "prediction", TextCell(Origin(refined)));
    report.Fact("finished", "time budget",
                {refined.finished, refined.finished ? "kept"
                                   : tuned.stopped  ? "interrupted: the best plan by then"
                                                    : "over: the best plan by then"});
    report.Fact("plan", "plan", TextCell(plan_shown_.empty() ? request_.plan_path : plan_shown_));
    AddDisturbance(report, tuned.watch.total());
  }

  static void AddErrors(Report& report, const PlannedNetwork& tuned, bool random) {
    if (tuned.output_error) AddOutputError(report, *tuned.output_error, random);
    if (tuned.predicted_output_error)
      report.Fact("predicted_output_error", "  predicted", ErrorCell(*tuned.predicted_output_error));
  }

  // Where the predicted figures come from.
  static std::string Origin(const RefinedPlan& refined) {
    if (refined.rounds.empty() || (!refined.finished && refined.check.seconds == 0)) return "from the log";
    return fmt::format("of {}, {}", refined.rounds[refined.round].name,
                       refined.settled ? "settled" : "not settled");
  }

  const std::string plan_shown_;  // instead of the plan's path; "": that itself
  const Args* args_ = nullptr;    // while it runs
  FarmOptions farm_;
  GraphTuneModelRequest request_;
  int64_t max_weights_ = 0;  // 0: no limit
  std::string onnxruntime_, save_path_, report_path_;
  double max_output_error_ = std::numeric_limits<double>::infinity();
  bool no_baselines_ = false, check_ = false, nodes_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeGraphTuneCommand(const std::string& plan_shown) {
  return std::make_unique<GraphTuneCommand>(plan_shown);
}

}  // namespace tilesmith
