#include "graph_tuner/refine/plan_measurement.h"

#include <map>
#include <utility>

#include "graph_tuner/plan/crossings.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/plan/price_plan.h"
#include "layouts/base/check.h"

namespace tilesmith {
namespace {

Graph::NodeId NodeOf(const Graph& graph, const std::string& name) {
  const auto id = graph.Find(name);
  TILESMITH_CHECK(id.has_value(), "no node \"{}\" in {}", name, graph.name());
  return *id;
}

}  // namespace

std::vector<double> RatiosTo(const PlanMeasurement& other, const PlanMeasurement& measurement) {
  TILESMITH_CHECK(!other.turns.empty() && other.turns.size() == measurement.turns.size(), "{} and {} turns",
                  other.turns.size(), measurement.turns.size());
  std::vector<double> ratios;
  ratios.reserve(other.turns.size());
  for (size_t turn = 0; turn < other.turns.size(); ++turn)
    ratios.push_back(measurement.turns[turn] / other.turns[turn]);
  return ratios;
}

double ProfiledSeconds(const PlanMeasurement& measurement) {
  double seconds = 0;
  for (const StepProfile& step : measurement.steps) seconds += step.seconds;
  return seconds;
}

double ShareScale(const PlanMeasurement& measurement) {
  const double profiled = ProfiledSeconds(measurement);
  return profiled > 0 ? measurement.seconds / profiled : 1;
}

std::vector<MatchedStep> MatchSteps(const Graph& graph, const Plan& plan, CostSource& costs,
                                    const PlanMeasurement& measurement) {
  Plan alone = plan;  // by the costs, without what was learned
  PricePlan(graph, costs, alone, {}, measurement.placement);
  struct Planned {
    const NodePlan *node = nullptr, *alone = nullptr;
  };
  std::map<std::string, Planned> nodes;
  for (size_t i = 0; i < plan.nodes.size(); ++i)
    nodes[plan.nodes[i].node] = {&plan.nodes[i], &alone.nodes[i]};
  const std::map<ConversionKey, PlannedConversion> conversions = PlannedConversions(graph, plan),
                                                   by_costs_alone = PlannedConversions(graph, alone);
  std::vector<MatchedStep> matched;
  for (const StepProfile& step : measurement.steps) {
    MatchedStep match{.step = step};
    const Graph::NodeId id = NodeOf(graph, step.node);
    if (step.conversion) {
      if (step.planned) {
        match.stand_alone_seconds =
            FillSeconds(graph.node(id).shape, step.conversion->in, step.conversion->out, costs);
        const ConversionKey key = {step.node, *step.conversion};
        const auto entry = conversions.find(key), priced = by_costs_alone.find(key);
        if (entry != conversions.end()) match.predicted_seconds = entry->second.seconds;
        if (priced != by_costs_alone.end()) match.dealt.crossing_seconds = priced->second.crossing_seconds;
      }
    } else {
      const auto found = nodes.find(step.node);
      TILESMITH_CHECK(found != nodes.end(), "the plan has no node \"{}\"", step.node);
      match.node = found->second.node;
      const NodePlan& by_costs = *found->second.alone;
      match.stand_alone_seconds = by_costs.predicted_seconds - by_costs.crossing_seconds;
      match.dealt = {match.node->split, BandRowsOf(plan, *match.node), 1, by_costs.crossing_seconds};
      if (match.node->record && match.node->record->seconds > 0)
        match.dealt.balance = match.stand_alone_seconds / match.node->record->seconds;
      match.predicted_seconds = match.node->predicted_seconds;
    }
    matched.push_back(std::move(match));
  }
  return matched;
}

void Learn(const std::vector<MatchedStep>& steps, double share_scale, Corrections& corrections) {
  struct Repeated {
    double stand_alone = 0, seconds = 0, crossing = 0;
    int count = 0;
  };
  std::map<ConversionKey, Repeated> conversions;
  for (const MatchedStep& match : steps) {
    const double seconds = match.step.seconds * share_scale;
    if (match.node && match.node->record) {
      corrections.LearnConv(match.node->node, *match.node->record, seconds, match.dealt);
    } else if (match.node) {
      corrections.LearnOp(match.node->node, match.node->layouts.in, match.stand_alone_seconds, seconds,
                          match.dealt);
    } else if (match.step.planned) {
      Repeated& repeated = conversions[{match.step.node, *match.step.conversion}];
      repeated.stand_alone = match.stand_alone_seconds;
      repeated.crossing = match.dealt.crossing_seconds;
      repeated.seconds += seconds;
      ++repeated.count;
    }
  }
  for (const auto& [key, repeated] : conversions)
    corrections.LearnConversion(key.first, key.second, repeated.stand_alone,
                                repeated.seconds / repeated.count, repeated.crossing);
}

}  // namespace tilesmith
