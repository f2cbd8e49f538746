#include "graph_tuner/prediction_loop.h"

#include <fmt/format.h>

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
    for (int round = 0; round < loop_.rounds && !refined_.settled; ++round) {
      RunSolution();
      if (round == 0) RunRivals();
    }
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
  // The run of these schedules; null when they have not run.
  Run* Known(const Plan& plan) {
    const auto known =
        std::ranges::find_if(runs_, [&](const Run& run) { return SameSchedules(run.plan, plan); });
    return known != runs_.end() ? &*known : nullptr;
  }

  void RunSolution() {
    const Plan plan = loop_.solve(refined_.corrections);
    const Run* known = Known(plan);
    if (known && Agrees(plan.predicted_seconds, known->measured_seconds, loop_.tolerance)) {
      refined_.settled = true;
      solution_ = size_t(known - runs_.data());
      return;
    }
    std::vector<std::string> changed;
    if (solutions_ > 0) changed = ChangedNodes(last_, plan);
    last_ = plan;
    solution_ = RunPlan(fmt::format("solution {}", ++solutions_), plan, std::move(changed));
  }

  void RunRivals() {
    if (!loop_.rivals) return;
    for (const RivalPlan& rival : loop_.rivals())
      if (!Known(rival.plan)) RunPlan(rival.name, rival.plan, ChangedNodes(last_, rival.plan));
  }

  // Returns which of the runs it is.
  size_t RunPlan(const std::string& name, const Plan& plan, std::vector<std::string> changed) {
    const PlanMeasurement measured = loop_.measure(plan);
    refined_.rounds.push_back({name, plan.predicted_seconds, measured.seconds, std::move(changed)});
    const std::vector<MatchedStep> steps = MatchSteps(graph_, plan, costs_, measured.steps);
    Learn(steps, ShareScale(measured), refined_.corrections);
    Corrections seen;
    Learn(steps, ShareScale(measured), seen);
    Run* const known = Known(plan);
    Run& run = known ? *known : runs_.emplace_back();
    run = {plan, refined_.rounds.size() - 1, measured.seconds, std::move(seen)};
    return size_t(&run - runs_.data());
  }

  // The last solution, unless something that ran is faster. Precondition: something ran.
  const Run& Fastest() const {
    const Run* fastest = &runs_[solution_];
    for (size_t i = 0; i < runs_.size(); ++i)
      if (i != solution_ && loop_.is_faster(runs_[i].plan, fastest->plan)) fastest = &runs_[i];
    return *fastest;
  }

  const Graph& graph_;
  CostSource& costs_;
  const PredictionLoop& loop_;
  RefinedPlan refined_;
  std::vector<Run> runs_;  // distinct plans, by when they ran first
  Plan last_;              // solution
  int solutions_ = 0;
  size_t solution_ = 0;  // which of the runs is the last solution
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
