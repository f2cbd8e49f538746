// A machine for the prediction loop on which costs in context are known exactly.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/refine/plan_measurement.h"

namespace tilesmith {

// A machine on which costs in context are not what the log says, known exactly.
class FakeMachine {
 public:
  // How many times longer than alone a step takes: of a node's option, or of a conversion of a tensor.
  using Factor = std::function<double(const std::string& node, const std::string& option)>;

  FakeMachine(const Graph& graph, CostSource& costs, Factor factor)
      : graph_(graph), costs_(costs), factor_(std::move(factor)) {}

  std::vector<PlanMeasurement> Measure(const std::vector<const Plan*>& plans) {
    const double drift = drifts.empty() ? 1 : drifts[sessions.size() % drifts.size()];
    const CorePlacement placement =
        placements.empty() ? CorePlacement{} : placements[sessions.size() % placements.size()];
    sessions.emplace_back();
    std::vector<PlanMeasurement> measurements;
    for (const Plan* plan : plans) {
      measurements.push_back(Truth(*plan, placement));
      PlanMeasurement& measurement = measurements.back();
      measurement.seconds *= drift;
      for (StepProfile& step : measurement.steps) step.seconds *= drift;
      for (const double moment : {1.0, 3.0, 0.9}) measurement.turns.push_back(measurement.seconds * moment);
      sessions.back().push_back(*plan);
    }
    return measurements;
  }

  // On cores placed like that, or in the mean of the costs' distances.
  double TrueSeconds(const Plan& plan, const CorePlacement& placement = {}) const {
    return Truth(plan, placement).seconds;
  }

  std::vector<double> drifts;               // of the machine's speed from one session to the next
  std::vector<CorePlacement> placements;    // likewise, of its cores
  std::vector<std::vector<Plan>> sessions;  // plans that were run by turns

 private:
  PlanMeasurement Truth(const Plan& plan, const CorePlacement& placement) const {
    Plan alone = plan;
    PricePlan(graph_, costs_, alone, {}, placement);
    PlanMeasurement truth;
    truth.placement = placement;
    for (const NodePlan& node : alone.nodes) {
      if (node.predicted_seconds == 0) continue;
      const std::string option = node.layouts.in.ToString() + node.layouts.out.ToString();
      const double own = (node.predicted_seconds - node.crossing_seconds) * factor_(node.node, option);
      truth.steps.push_back(Step(node.node, own + node.crossing_seconds));
    }
    for (const TransformPlan& transform : alone.transforms) {
      const Shape& shape = graph_.node(*graph_.Find(transform.tensor)).shape;
      const LayoutPair conversion = ConversionOf(shape, transform.from, transform.to);
      const std::string option = "to " + conversion.in.ToString() + conversion.out.ToString();
      const double own =
          (transform.predicted_seconds - transform.crossing_seconds) * factor_(transform.tensor, option);
      truth.steps.push_back(Step(transform.tensor, own + transform.crossing_seconds));
      truth.steps.back().conversion = conversion;
    }
    truth.seconds = ProfiledSeconds(truth);
    return truth;
  }

  static StepProfile Step(const std::string& node, double seconds) {
    StepProfile step;
    step.node = node;
    step.seconds = seconds;
    return step;
  }

  const Graph& graph_;
  CostSource& costs_;
  const Factor factor_;
};

}  // namespace tilesmith
