#include "graph_tuner/explain/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "graph_tuner/executor/schedule.h"
#include "graph_tuner/explain/layout_tries.h"
#include "graph_tuner/problem/graph_tune.h"
#include "layouts/base/error.h"
#include "ops/conv/conv.h"
#include "tools/cli/close_names.h"
#include "tools/cli/graph_tuning.h"
#include "tools/cli/report.h"
#include "tools/commands/commands.h"
#include "tools/network/explain_report.h"
#include "tools/network/explain_text.h"
#include "tools/network/network_run.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

constexpr size_t kShownTerms = 12;  // and changes of a plan, as text
constexpr int64_t kMaxPlans = 1000;

// A node that has a layout of its own. Throws Error(kUsage) naming those with a similar name.
NodeId FindNode(const Graph& graph, const std::string& name) {
  constexpr size_t kMaxNames = 5;
  std::vector<std::string> names;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const std::string_view type = graph.node(id).op->Type();
    if (type == "Input" || type == "Constant") continue;
    if (graph.node(id).name == name) return id;
    names.push_back(graph.node(id).name);
  }
  const std::vector<std::string> close = CloseNames(name, names, kMaxNames);
  const std::string hint = close.empty() ? fmt::format("without a NODE, all {} are listed", names.size())
                                         : fmt::format("close: {}", fmt::join(close, ", "));
  throw Error(ErrorCode::kUsage, fmt::format("{} has no node \"{}\" ({})", graph.name(), name, hint));
}

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
    DeclareModelOptions(args, &arguments_.model);
    args.OptionalPositional("NODE", &node_, "The node to explain (default: a summary of all)");
    args.Text("--plan", &plan_path_, "A plan of this network, to be held against the best one");
    args.NonNegative("--plans", &plans_, "Without NODE: how many of the best plans to compare (default 3)");
    args.Text("--layout", &layout_, "Was this layout tried, and how far off is it");
    DeclareGraphTuning(args, &arguments_);
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    CheckGraphTuning(arguments_);
    const std::optional<Layout> layout =
        layout_.empty() ? std::nullopt : std::optional(Layout::Parse(layout_));
    const Machine machine = OpenMachine(arguments_.machine);
    const Graph graph = LoadModel(arguments_.model);
    std::optional<NodeId> node;
    if (!node_.empty()) node = FindNode(graph, node_);
    const std::vector<Record> records = LoadTuningLog(arguments_, machine);
    std::optional<Plan> plan;
    if (!plan_path_.empty()) plan = OpenCheckedPlan(graph, machine);
    const PinnedTeam team(machine);
    ProgressLine progress;
    const auto costs = OpenCosts(arguments_, machine, SinksOf(progress));
    GraphTuneOptions options = TuningOptions(arguments_, machine, SinksOf(progress));
    if (plan) options.ends = plan->ends;
    const NetworkProblem problem(graph, records, *costs, options);
    const SolvedNetwork solved = SolveNetwork(problem, plan ? plan->corrections : Corrections());
    ExplainedNetwork network{solved, plan ? &*plan : nullptr};
    if (!json_) network.most_terms = kShownTerms;

    Report report;
    AddTotals(report, network);
    const NodeProgress show = [&](size_t done, size_t total) {
      progress.Show(fmt::format("nodes {}/{}", done, total));
    };
    if (node) {
      const std::vector<ExplainedChoice> choices = ExplainNode(solved, *node);
      AddNode(report, network, choices);
      if (layout) AddLayout(report, network, choices, Ask(solved, *node, *layout, records));
    } else if (layout) {
      AddUniform(report, solved, *layout);
      AddLayoutSummary(report, network, *layout, records, show);
    } else {
      AddSummary(report, network, show);
      if (plans_ > 0) AddPlans(report, network, BestPlans(solved, int(std::min<int64_t>(plans_, kMaxPlans))));
    }
    progress.Clear();
    report.Print(json_);
    return 0;
  }

 private:
  // Explaining looks at what the plan's layouts cost, so they must be such that it could run.
  Plan OpenCheckedPlan(const Graph& graph, const Machine& machine) const {
    Plan plan = OpenPlan(plan_path_, graph, machine);
    try {
      ResolveSchedules(graph, plan, machine.cpu);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", plan_path_, error.what()));
    }
    return plan;
  }

  static void AddUniform(Report& report, const SolvedNetwork& solved, const Layout& layout) {
    const NetworkProblem uniform = solved.problem.Restricted({.uniform = layout});
    const Plan plan = GraphTune(uniform, solved.priced.corrections).plan;
    report.Fact("uniform_seconds", layout.ToString() + " wherever possible, ms",
                MillisecondsCell(plan.predicted_seconds));
    report.Fact("uniform_off_seconds", "  off ms",
                MoreCell(plan.predicted_seconds - solved.best.predicted_seconds));
  }

  AskedLayout Ask(const SolvedNetwork& solved, NodeId node, const Layout& layout,
                  const std::vector<Record>& records) const {
    const auto* conv = dynamic_cast<const ConvOp*>(solved.graph().node(node).op.get());
    if (!conv) return {layout, {}, ""};
    const GraphTuneOptions& options = solved.problem.options();
    LayoutTries tries =
        FindLayoutTries(conv->workload(), layout, records, {options.cpu, options.threads, options.accuracy});
    std::string command = TuneCommand(conv->workload(), tries);
    return {layout, std::move(tries), std::move(command)};
  }

  // The database is left out: it may know the task from so many trials that none would be made.
  std::string TuneCommand(const ConvWorkload& workload, const LayoutTries& tries) const {
    const std::string& log = arguments_.log_path;
    const MachineOptions& machine = arguments_.machine;
    std::string command =
        fmt::format("tilesmith tune {} -o {} --trials {} --no-db", WorkloadToString(workload),
                    log.empty() ? "LOG" : log + " --resume", TrialsToCoverLayouts(tries));
    if (tries.cold_weights) command += " --conditions cold";
    if (machine.threads > 0) command += fmt::format(" --threads {}", machine.threads);
    if (!machine.max_isa.empty()) command += " --max-isa " + machine.max_isa;
    return command;
  }

  GraphTuningArguments arguments_;
  std::string node_, plan_path_, layout_;
  int64_t plans_ = 3;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeExplainCommand() { return std::make_unique<ExplainCommand>(); }

}  // namespace tilesmith
