#include "layouts/base/error.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/commands/commands.h"
#include "tools/network/explain_report.h"
#include "tools/network/plan_choice.h"
#include "tools/quantize/in_place.h"
#include "tools/tune/graph_tune_model.h"

namespace tilesmith {
namespace {

constexpr size_t kShownTerms = 12;  // and changes of a plan, as text

class ExplainCommand : public Command {
 public:
  std::string_view Name() const override { return "explain"; }
  std::string_view Purpose() const override {
    return "Why this layout and not that one: what each would cost the whole network";
  }
  std::string_view Examples() const override {
    return "tilesmith explain resnet50 --log resnet50.jsonl\n"
           "tilesmith explain resnet50 layer1.0.conv2 --log resnet50.jsonl --layout NCHW16c\n"
           "tilesmith explain resnet50 --log resnet50.jsonl --plan resnet50.plan.jsonl --json";
  }
  void Declare(Args& args) override {
    args_ = &args;
    DeclareModelOptions(args, &request_.arguments.model);
    args.OptionalPositional("NODE", &request_.node, "The node to explain (default: a summary of all)");
    args.Text("--plan", &request_.plan_path, "A plan of this network, to be held against the best one",
              "PLAN");
    args.NonNegative("--plans", &request_.plans,
                     "Without NODE: how many of the best plans to compare (default 3; 0: none)");
    args.Text("--layout", &layout_, "Was this layout tried, and how far off is it", "LAYOUT");
    DeclareGraphTuning(args, &request_.arguments);
    DeclareCalibration(args, &request_.arguments.model);
    args.Group("Output");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    if (!request_.node.empty())
      args_->RefuseGiven({"--plans"}, "is for a summary of all nodes, without NODE");
    CheckGraphTuning(request_.arguments);
    if (!layout_.empty()) request_.layout = Layout::Parse(layout_);
    CatchInterrupts();
    ProgressLine progress;
    GraphTuningArguments& arguments = request_.arguments;
    TakeQuantization(request_.plan_path, &arguments.model);
    const Precision precision = arguments.machine.precision;
    QuantizeInPlace(
        precision, [&] { return OpenMachine(arguments.machine); }, SinksOf(progress), &arguments.model);
    const std::string asked = request_.node;
    if (!asked.empty())
      request_.node = NodeOfLayer(ModelNetwork(arguments.model, {}), arguments.model.quantization, asked);
    const ExplainedPlan explained = ExplainPlan(request_, SinksOf(progress));
    const bool typed = arguments.model.quantization || precision == Precision::kMixed;
    std::vector<TypedNode> types;
    if (!asked.empty() && typed && arguments.machine.target == kCpuDevice)
      types = TypesOf(asked, SinksOf(progress));
    progress.Clear();
    Report report;
    AddCalibration(report, arguments.model.quantization.get());
    if (json_)
      AddExplanation(report, explained, request_.layout);
    else
      AddExplanation(report, explained, request_.layout, kShownTerms);
    AddTypedNodes(report, types);
    PrintResults(report, json_, ChosenTarget(request_.arguments.machine));
    return 0;
  }

 private:
  std::vector<TypedNode> TypesOf(const std::string& layer, const WorkSinks& sinks) const {
    const GraphTuningArguments& arguments = request_.arguments;
    PlanRequest planning;
    planning.machine = OpenMachine(arguments.machine);
    ModelNetwork network(arguments.model, planning.machine);
    planning.network = &network;
    planning.quantization = arguments.model.quantization;
    const std::vector<Record> log = LoadTuningLog(arguments, planning.machine);
    planning.log = &log;
    planning.open_costs = [&] { return OpenCosts(arguments, planning.machine, sinks); };
    planning.tuning = TuningOptions(arguments, planning.machine, sinks);
    return ExplainTypes(planning, layer, sinks);
  }

  const Args* args_ = nullptr;  // while it runs
  ExplainPlanRequest request_;
  std::string layout_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeExplainCommand() { return std::make_unique<ExplainCommand>(); }

}  // namespace tilesmith
