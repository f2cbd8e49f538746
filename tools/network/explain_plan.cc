#include "tools/network/explain_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "graph_tuner/executor/schedule.h"
#include "graph_tuner/problem/graph_tune.h"
#include "layouts/base/close_names.h"
#include "layouts/base/error.h"
#include "ops/conv/conv.h"
#include "tools/network/input_files.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

constexpr int64_t kMaxPlans = 1000;

// A node that has a layout of its own.
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

class Explainer {
 public:
  Explainer(const ExplainPlanRequest& request, const WorkSinks& sinks) : request_(request), sinks_(sinks) {}

  ExplainedPlan Run() {
    const GraphTuningArguments& arguments = request_.arguments;
    CheckGraphTuning(arguments);
    const DevicePtr machine = OpenMachine(arguments.machine);
    explained_.graph = std::make_unique<const Graph>(LoadModel(arguments.model));
    std::optional<NodeId> node;
    if (!request_.node.empty()) node = FindNode(*explained_.graph, request_.node);
    records_ = LoadTuningLog(arguments, machine);
    if (!request_.plan_path.empty()) explained_.given = GivenPlan{OpenCheckedPlan(machine)};
    const PinnedTeam team(machine);
    Solve(machine);
    if (explained_.given) CompareGiven(!node && !request_.layout);
    if (node) {
      explained_.options = ExplainNode(Solved(), *node);
      if (request_.layout) Ask(*node, *request_.layout);
    } else if (request_.layout) {
      explained_.uniform_seconds = UniformSeconds(*request_.layout);
      ExplainConvs(*request_.layout);
    } else {
      ExplainNodes();
      if (request_.plans > 0)
        explained_.plans = BestPlans(Solved(), static_cast<int>(std::min(request_.plans, kMaxPlans)));
    }
    return std::move(explained_);
  }

 private:
  const SolvedNetwork& Solved() const { return *explained_.solved; }

  // Explaining looks at what the plan's layouts cost, so they must be such that it could run.
  Plan OpenCheckedPlan(const DevicePtr& machine) const {
    Plan plan = OpenPlan(request_.plan_path, *explained_.graph, machine, {.strict = true});
    try {
      ResolveSchedules(*explained_.graph, plan, machine->target());
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", request_.plan_path, error.what()));
    }
    return plan;
  }

  void Solve(const DevicePtr& machine) {
    explained_.costs = OpenCosts(request_.arguments, machine, sinks_);
    GraphTuneOptions options = TuningOptions(request_.arguments, machine, sinks_);
    Corrections corrections;
    if (explained_.given) {
      options.ends = explained_.given->plan.ends;
      corrections = explained_.given->plan.corrections;
    }
    explained_.problem = std::make_unique<const NetworkProblem>(*explained_.graph, records_,
                                                                *explained_.costs, std::move(options));
    explained_.solved = std::make_unique<const SolvedNetwork>(SolveNetwork(*explained_.problem, corrections));
  }

  void CompareGiven(bool with_terms) {
    GivenPlan& given = *explained_.given;
    std::vector<FixedNode> choices;
    for (const NodePlan& planned : given.plan.nodes) {
      const NodeId node = NodeOf(planned);
      if (const std::optional<NodeChoice> choice = GivenChoice(explained_, node))
        choices.push_back({node, *choice});
    }
    const Plan with_its_choices = BestPlanWith(Solved(), choices);
    given.layouts_seconds = with_its_choices.predicted_seconds;
    given.missing = given.plan.nodes.size() - choices.size();
    if (with_terms)
      given.terms = Differences(*explained_.graph, Solved().best, with_its_choices, std::nullopt);
  }

  NodeId NodeOf(const NodePlan& schedule) const { return explained_.graph->Find(schedule.node).value(); }

  void Progress(size_t done) const {
    ThrowIfStopped(sinks_.stop);
    sinks_.Stage(fmt::format("nodes {}/{}", done, Solved().best.nodes.size()));
  }

  void ExplainNodes() {
    for (const NodePlan& best : Solved().best.nodes) {
      const NodeId node = NodeOf(best);
      Progress(static_cast<size_t>(&best - Solved().best.nodes.data()));
      if (ChoicesOf(Solved().built(), node).size() < 2) continue;
      std::optional<ExplainedChoice> other;
      if (!explained_.given)
        other = RunnerUp(Solved(), node);
      else if (const std::optional<NodeChoice> given = GivenChoice(explained_, node))
        other = ExplainChoice(Solved(), node, *given);
      explained_.nodes.push_back({best, std::move(other)});
    }
  }

  LayoutTries TriesOf(const ConvWorkload& workload, const Layout& layout) const {
    const GraphTuneOptions& options = explained_.problem->options();
    return FindLayoutTries(workload, layout, records_, {options.cpu, options.threads, options.accuracy});
  }

  const ConvolutionOp* ConvAt(NodeId node) const {
    return dynamic_cast<const ConvolutionOp*>(explained_.graph->node(node).op.get());
  }

  void ExplainConvs(const Layout& layout) {
    const BuiltProblem& built = Solved().built();
    for (const NodePlan& best : Solved().best.nodes) {
      Progress(static_cast<size_t>(&best - Solved().best.nodes.data()));
      const NodeId node = NodeOf(best);
      const ConvolutionOp* const conv = ConvAt(node);
      if (!conv) continue;
      std::vector<NodeChoice> choices = ChoicesOf(built, node);
      std::erase_if(choices, [&](const NodeChoice& choice) {
        return !HasLayout(*explained_.graph, built, {node, choice}, layout);
      });
      std::optional<ExplainedChoice> closest;
      if (!choices.empty()) closest = BestOf(Solved(), node, choices);
      explained_.convolutions.push_back({best, std::move(closest), TriesOf(conv->workload(), layout)});
    }
  }

  double UniformSeconds(const Layout& layout) const {
    const NetworkProblem uniform = explained_.problem->Restricted({.uniform = layout});
    return GraphTune(uniform, Solved().priced.corrections).plan.predicted_seconds;
  }

  void Ask(NodeId node, const Layout& layout) {
    const ConvolutionOp* const conv = ConvAt(node);
    if (!conv) return;
    explained_.tries = TriesOf(conv->workload(), layout);
    explained_.command = TuneCommand(conv->workload(), explained_.tries);
  }

  // The database is left out: it may know the task from so many trials that none would be made.
  std::string TuneCommand(const ConvWorkload& workload, const LayoutTries& tries) const {
    const std::string& log = request_.arguments.log_path;
    const MachineOptions& machine = request_.arguments.machine;
    std::string command =
        fmt::format("tilesmith tune {} -o {} --trials {} --no-db", WorkloadToString(workload),
                    log.empty() ? "LOG" : log + " --resume", TrialsToCoverLayouts(tries));
    if (tries.cold_weights) command += " --conditions cold";
    if (machine.threads > 0) command += fmt::format(" --threads {}", machine.threads);
    if (!machine.max_isa.empty()) command += " --max-isa " + machine.max_isa;
    if (machine.target != kCpuDevice) command += " --target " + machine.target;
    return command;
  }

  const ExplainPlanRequest& request_;
  const WorkSinks& sinks_;
  std::vector<Record> records_;
  ExplainedPlan explained_;
};

}  // namespace

std::optional<NodeChoice> GivenChoice(const ExplainedPlan& explained, NodeId node) {
  if (!explained.given) return std::nullopt;
  return ChosenBy(*explained.graph, explained.solved->built(), explained.given->plan, node);
}

ExplainedPlan ExplainPlan(const ExplainPlanRequest& request, const WorkSinks& sinks) {
  return Explainer(request, sinks).Run();
}

}  // namespace tilesmith
