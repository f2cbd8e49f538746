#include "graph_tuner/prediction_loop.h"

#include <algorithm>
#include <cmath>

#include "graph_tuner/price_plan.h"

namespace tilesmith {
namespace {

// A plan that ran, and what was seen in the round it ran in last.
struct Run {
  Plan plan;
  size_t round = 0;
  double measured_seconds = 0;
  Corrections seen;  // from these steps alone
};

bool Agrees(double predicted, double measured, double tolerance) {
  return std::abs(measured - predicted) <= tolerance * predicted;
}

std::vector<std::string> ChangedNodes(const Plan& before, const Plan& after) {
  std::vector<std::string> changed;
  for (size_t i = 0; i < after.nodes.size(); ++i)
    if (!SameSchedule(before.nodes[i], after.nodes[i])) changed.push_back(after.nodes[i].node);
  return changed;
}

class Refinement {
 public:
  Refinement(const Graph& graph, CostSource& costs, const PredictionLoop& loop)
      : graph_(graph), costs_(costs), loop_(loop) {}

  RefinedPlan Refine() {
    for (int round = 0; round < loop_.rounds && !refined_.settled; ++round) RunRound();
    if (runs_.empty()) {
      refined_.plan = loop_.solve({});
    } else {
      const Run& fastest = Fastest();
      refined_.plan = fastest.plan;
      refined_.round = fastest.round;
      PricePlan(graph_, costs_, refined_.plan, fastest.seen);
    }
    refined_.check = loop_.measure(refined_.plan);
    return std::move(refined_);
  }

 private:
  void RunRound() {
    Plan plan = loop_.solve(refined_.corrections);
    const auto known =
        std::ranges::find_if(runs_, [&](const Run& run) { return SameSchedules(run.plan, plan); });
    if (known != runs_.end() && Agrees(plan.predicted_seconds, known->measured_seconds, loop_.tolerance)) {
      refined_.settled = true;
      return;
    }
    const PlanMeasurement measured = loop_.measure(plan);
    std::vector<std::string> changed;
    if (!refined_.rounds.empty()) changed = ChangedNodes(last_, plan);
    refined_.rounds.push_back({plan.predicted_seconds, measured.seconds, std::move(changed)});
    last_ = plan;
    const std::vector<MatchedStep> steps = MatchSteps(graph_, plan, costs_, measured.steps);
    Learn(steps, ShareScale(measured), refined_.corrections);
    Corrections seen;
    Learn(steps, ShareScale(measured), seen);
    Run& run = known != runs_.end() ? *known : runs_.emplace_back();
    run = {last_, refined_.rounds.size() - 1, measured.seconds, std::move(seen)};
  }

  // Precondition: something ran.
  const Run& Fastest() const {
    const Run* fastest = &runs_.front();
    for (const Run& run : runs_)
      if (&run != fastest && loop_.is_faster(run.plan, fastest->plan)) fastest = &run;
    return *fastest;
  }

  const Graph& graph_;
  CostSource& costs_;
  const PredictionLoop& loop_;
  RefinedPlan refined_;
  std::vector<Run> runs_;  // distinct plans, by when they ran first
  Plan last_;
};

}  // namespace

bool SameSchedule(const NodePlan& a, const NodePlan& b) {
  if (a.node != b.node || a.layouts != b.layouts || a.fused_into != b.fused_into) return false;
  if (a.record.has_value() != b.record.has_value()) return false;
  return !a.record ||
         (a.record->workload == b.record->workload && a.record->template_name == b.record->template_name &&
          a.record->config == b.record->config);
}

bool SameSchedules(const Plan& a, const Plan& b) {
  return std::ranges::equal(a.nodes, b.nodes, SameSchedule);
}

RefinedPlan RefinePlan(const Graph& graph, CostSource& costs, const PredictionLoop& loop) {
  return Refinement(graph, costs, loop).Refine();
}

}  // namespace tilesmith
