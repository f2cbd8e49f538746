#include "graph_tuner/planner/explain_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "graph_tuner/problem/graph_tune.h"
#include "layouts/base/close_names.h"
#include "layouts/base/error.h"
#include "ops/conv/conv.h"

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
  Explainer(const PlanRequest& request, const PlanQuestion& question, const WorkSinks& sinks)
      : request_(request), question_(question), sinks_(sinks) {}

  ExplainedPlan Run() {
    explained_.graph = std::make_unique<const Graph>(request_.network->Load(request_.quantization));
    std::optional<NodeId> node;
    if (!question_.node.empty()) node = FindNode(*explained_.graph, question_.node);
    if (question_.open_plan) explained_.given = GivenPlan{question_.open_plan(*explained_.graph)};
    const PinnedTeam team(request_.machine);
    Solve();
    if (explained_.given) CompareGiven(!node && !question_.layout);
    if (node) {
      explained_.options = ExplainNode(Solved(), *node);
      const ConvolutionOp* const conv = ConvAt(*node);
      if (conv && question_.layout) explained_.tries = TriesOf(conv->workload(), *question_.layout);
    } else if (question_.layout) {
      explained_.uniform_seconds = UniformSeconds(*question_.layout);
      ExplainConvs(*question_.layout);
    } else {
      ExplainNodes();
      if (question_.plans > 0)
        explained_.plans = BestPlans(Solved(), static_cast<int>(std::min(question_.plans, kMaxPlans)));
    }
    return std::move(explained_);
  }

 private:
  const SolvedNetwork& Solved() const { return *explained_.solved; }

  void Solve() {
    explained_.costs = request_.open_costs();
    GraphTuneOptions options = request_.tuning;
    Corrections corrections;
    if (explained_.given) {
      options.ends = explained_.given->plan.ends;
      corrections = explained_.given->plan.corrections;
    }
    explained_.problem = std::make_unique<const NetworkProblem>(*explained_.graph, *request_.log,
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
    return FindLayoutTries(workload, layout, *request_.log, {options.cpu, options.threads, options.accuracy});
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

  const PlanRequest& request_;
  const PlanQuestion& question_;
  const WorkSinks& sinks_;
  ExplainedPlan explained_;
};

}  // namespace

std::optional<NodeChoice> GivenChoice(const ExplainedPlan& explained, NodeId node) {
  if (!explained.given) return std::nullopt;
  return ChosenBy(*explained.graph, explained.solved->built(), explained.given->plan, node);
}

ExplainedPlan ExplainPlan(const PlanRequest& request, const PlanQuestion& question, const WorkSinks& sinks) {
  return Explainer(request, question, sinks).Run();
}

}  // namespace tilesmith
