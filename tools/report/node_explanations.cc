#include "tools/report/node_explanations.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "graph_tuner/explain/explain.h"
#include "layouts/measure/clock.h"
#include "tools/cli/graph_tuning.h"
#include "tools/network/explain_report.h"

namespace tilesmith {
namespace {

using Json = nlohmann::ordered_json;

// As far as the plan says them; its own options are not known.
GraphTuningArguments ArgumentsFor(const ReportedPlan& explained) {
  GraphTuningArguments arguments;
  arguments.machine.threads = explained.plan.threads;
  arguments.machine.max_isa = IsaName(explained.plan.target.isa);
  arguments.costs_path = explained.costs_path;
  arguments.tuning.accuracy = explained.plan.accuracy;
  arguments.tuning.allow_defaults = std::ranges::any_of(
      explained.plan.nodes, [](const NodePlan& node) { return node.record && node.record->seconds == 0; });
  return arguments;
}

// The choice in the plan, or the runner-up where the plan has the best one.
std::optional<ExplainedChoice> OtherChoice(const SolvedNetwork& solved, const Plan& plan,
                                           Graph::NodeId node) {
  const std::optional<NodeChoice> given = ChosenBy(solved.graph(), solved.built(), plan, node);
  if (given && *given != ChosenBy(solved.built(), solved.assignment, node))
    return ExplainChoice(solved, node, *given);
  return RunnerUp(solved, node);
}

Json ExplanationOf(const SolvedNetwork& solved, const Plan& plan, const NodePlan& best) {
  const Graph::NodeId node = solved.graph().Find(best.node).value();
  const std::vector<NodeChoice> choices = ChoicesOf(solved.built(), node);
  Json json = {{"node", best.node},
               {"choices", choices.size()},
               {"best", ChoiceText(solved.graph(), solved.best, best)},
               {"best_seconds", best.predicted_seconds}};
  if (choices.size() < 2) return json;
  const std::optional<ExplainedChoice> other = OtherChoice(solved, plan, node);
  if (!other) return json;
  json["other"] = ChoiceText(solved.graph(), *other);
  json["other_is_plan"] = ChosenBy(solved.graph(), solved.built(), plan, node) == other->choice;
  json["off_seconds"] = other->total_seconds - solved.best.predicted_seconds;
  const NodeChoice chosen = ChosenBy(solved.built(), solved.assignment, node);
  json["why"] = InequalityText(solved.graph(), ExplainChoice(solved, node, chosen), *other);
  return json;
}

}  // namespace

NodeExplanations ExplainNodes(const ReportedPlan& explained, double seconds, const WorkSinks& sinks) {
  NodeExplanations explanations;
  if (seconds <= 0) return {Json::array(), "not asked for"};
  const Plan& plan = explained.plan;
  const double end = NowSeconds() + seconds;
  try {
    if (!SameMachine(plan.target, CapIsa(DetectCpu(), plan.target.isa)))
      return {Json::array(), "the plan is for another machine"};
    const GraphTuningArguments arguments = ArgumentsFor(explained);
    const DevicePtr machine = OpenMachine(arguments.machine);
    const PinnedTeam team(machine);
    const auto costs = OpenCosts(arguments, machine, sinks);
    GraphTuneOptions options = TuningOptions(arguments, machine, sinks);
    options.ends = plan.ends;
    const NetworkProblem problem(explained.graph, explained.records, *costs, options);
    const SolvedNetwork solved = SolveNetwork(problem, plan.corrections);
    std::vector<NodePlan> nodes = solved.best.nodes;
    std::ranges::stable_sort(nodes, std::greater(), &NodePlan::predicted_seconds);
    for (const NodePlan& node : nodes) {
      ThrowIfStopped(sinks.stop);
      if (NowSeconds() > end) {
        explanations.missing = fmt::format("of {} of {} nodes, as many as {} took", explanations.list.size(),
                                           nodes.size(), DurationText(seconds));
        break;
      }
      sinks.Stage(fmt::format("explaining nodes {}/{}", explanations.list.size() + 1, nodes.size()));
      explanations.list.push_back(ExplanationOf(solved, plan, node));
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInterrupted) throw;
    return {Json::array(), error.what()};
  }
  return explanations;
}

}  // namespace tilesmith
