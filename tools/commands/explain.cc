#include <fmt/format.h>

#include "graph_tuner/executor/schedule.h"
#include "layouts/base/error.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/commands/commands.h"
#include "tools/network/explain_report.h"
#include "tools/network/input_files.h"
#include "tools/quantize/in_place.h"
#include "tools/tune/graph_tune_model.h"

namespace tilesmith {
namespace {

constexpr size_t kShownTerms = 12;  // and changes of a plan, as text

class ExplainCommand : public Command {
 public:
  ExplainCommand()
      : Command({.name = "explain",
                 .purpose = "Why this layout and not that one: what each would cost the whole network",
                 .examples =
                     "tilesmith explain resnet50 --log resnet50.jsonl\n"
                     "tilesmith explain resnet50 layer1.0.conv2 --log resnet50.jsonl --layout NCHW16c\n"
                     "tilesmith explain resnet50 --log resnet50.jsonl --plan resnet50.plan.jsonl --json"}) {}
  void Declare(Args& args) override {
    args_ = &args;
    DeclareModelOptions(args, &arguments_.model);
    args.OptionalPositional("NODE", &question_.node, "The node to explain (default: a summary of all)");
    args.Text("--plan", &plan_path_, "A plan of this network, to be held against the best one", "PLAN");
    args.NonNegative("--plans", &question_.plans,
                     "Without NODE: how many of the best plans to compare (default 3; 0: none)");
    args.Text("--layout", &layout_, "Was this layout tried, and how far off is it", "LAYOUT");
    DeclareGraphTuning(args, &arguments_);
    DeclareCalibration(args, &arguments_.model);
    args.Group("Output");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    if (!question_.node.empty())
      args_->RefuseGiven({"--plans"}, "is for a summary of all nodes, without NODE");
    CheckGraphTuning(arguments_);
    if (!layout_.empty()) question_.layout = Layout::Parse(layout_);
    CatchInterrupts();
    ProgressLine progress;
    const WorkSinks sinks = SinksOf(progress);
    TakeQuantization(plan_path_, &arguments_.model);
    const Precision precision = arguments_.machine.precision;
    QuantizeInPlace(
        precision, [&] { return OpenMachine(arguments_.machine); }, sinks, &arguments_.model);
    PlanRequest planning;
    planning.machine = OpenMachine(arguments_.machine);
    ModelNetwork network(arguments_.model, planning.machine);
    planning.network = &network;
    planning.quantization = arguments_.model.quantization;
    const std::vector<Record> log = LoadTuningLog(arguments_, planning.machine);
    planning.log = &log;
    planning.open_costs = [&] { return OpenCosts(arguments_, planning.machine, sinks); };
    planning.tuning = TuningOptions(arguments_, planning.machine, sinks);
    if (!plan_path_.empty())
      question_.open_plan = [&](const Graph& graph) { return OpenGiven(graph, planning.machine); };
    const std::string asked = question_.node;
    if (!asked.empty()) question_.node = NodeOfLayer(network, planning.quantization, asked);
    const ExplainedPlan explained = ExplainPlan(planning, question_, sinks);
    const bool typed = planning.quantization || precision == Precision::kMixed;
    std::vector<TypedNode> types;
    if (!asked.empty() && typed && arguments_.machine.target == kCpuDevice)
      types = ExplainTypes(planning, asked, sinks);
    progress.Clear();
    Report report;
    AddCalibration(report, planning.quantization.get());
    if (json_)
      AddExplanation(report, explained, arguments_, question_.layout);
    else
      AddExplanation(report, explained, arguments_, question_.layout, kShownTerms);
    AddTypedNodes(report, types);
    PrintResults(report, json_, ChosenTarget(arguments_.machine));
    return 0;
  }

 private:
  // Explaining looks at what the plan's layouts cost, so they must be such that it could run.
  Plan OpenGiven(const Graph& graph, const DevicePtr& machine) const {
    Plan plan = OpenPlan(plan_path_, graph, machine, {.strict = true});
    try {
      ResolveSchedules(graph, plan, machine->target());
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", plan_path_, error.what()));
    }
    return plan;
  }

  const Args* args_ = nullptr;  // while it runs
  GraphTuningArguments arguments_;
  PlanQuestion question_;
  std::string plan_path_, layout_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeExplainCommand() { return std::make_unique<ExplainCommand>(); }

}  // namespace tilesmith
