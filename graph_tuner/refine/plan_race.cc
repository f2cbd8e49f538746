#include "graph_tuner/refine/plan_race.h"

#include <algorithm>
#include <utility>

#include "graph_tuner/plan/price_plan.h"
#include "layouts/base/check.h"
#include "layouts/measure/quantile.h"

namespace tilesmith {

size_t PlanRace::Find(const Plan& plan) const {
  const auto same =
      std::ranges::find_if(plans_, [&](const RacingPlan& k) { return SameSchedules(k.plan, plan); });
  return static_cast<size_t>(same - plans_.begin());
}

size_t PlanRace::Enter(const Plan& plan) {
  const size_t index = Find(plan);
  if (index == plans_.size()) plans_.emplace_back();
  plans_[index].plan = plan;
  return index;
}

void PlanRace::Run(std::span<const size_t> which, const Measure& measure) {
  TILESMITH_CHECK(!which.empty(), "a session of no plans");
  std::vector<const Plan*> plans;
  for (size_t index : which) plans.push_back(&plans_.at(index).plan);
  std::vector<PlanMeasurement> measurements = measure(plans);
  const RacingPlan& first = plans_[which[0]];
  const double so_far = first.measured() ? RatioOf(which[0]) : 1;
  const bool all = which.size() == plans_.size();
  const CorePlacement placement = measurements.at(0).placement;
  const double before =
      first.measurement.seconds > 0
          ? first.measurement.seconds + MovedSeconds(first.plan, first.measurement.placement, placement)
          : 0;
  corrections_ =
      all || !(before > 0) ? Corrections() : corrections_.Scaled(measurements.at(0).seconds / before);
  for (size_t i = 0; i < which.size(); ++i) {
    RacingPlan& racing = plans_[which[i]];
    racing.measurement = std::move(measurements.at(i));
    Learn(racing.plan, racing.measurement);
  }
  const auto in_the_mean = [&](const RacingPlan& racing) {
    PlanMeasurement moved = racing.measurement;
    const double more = MovedSeconds(racing.plan, placement, {});
    for (double& turn : moved.turns) turn += more;
    return moved;
  };
  const PlanMeasurement beside = in_the_mean(first);
  for (size_t index : which) {
    RacingPlan& racing = plans_[index];
    std::vector<double> ratios = RatiosTo(beside, in_the_mean(racing));
    for (double& ratio : ratios) ratio *= so_far;
    racing.sessions.push_back({placement, std::move(ratios)});
  }
  best_ = BetterOf(best_, placement);
}

void PlanRace::Learn(const Plan& plan, const PlanMeasurement& measurement) {
  tilesmith::Learn(MatchSteps(graph_, plan, costs_, measurement), ShareScale(measurement), corrections_);
}

double PlanRace::RatioOf(size_t plan) const {
  std::vector<double> well_placed, all;
  for (const RacingPlan::Session& session : plans_.at(plan).sessions) {
    all.insert(all.end(), session.ratios.begin(), session.ratios.end());
    if (ComputeAlike(session.placement, best_))
      well_placed.insert(well_placed.end(), session.ratios.begin(), session.ratios.end());
  }
  return Quantile(well_placed.empty() ? std::move(all) : std::move(well_placed), 0.5);
}

size_t PlanRace::Fastest(size_t preferred) const {
  size_t fastest = preferred < plans_.size() && plans_[preferred].measured() ? preferred : 0;
  double least = RatioOf(fastest);
  for (size_t i = 0; i < plans_.size(); ++i) {
    if (!plans_[i].measured()) continue;
    const double ratio = RatioOf(i);
    if (ratio >= least) continue;
    least = ratio;
    fastest = i;
  }
  return fastest;
}

Plan PlanRace::Priced(Plan plan, const CorePlacement& at) const {
  PricePlan(graph_, costs_, plan, corrections_, at);
  return plan;
}

Plan PlanRace::Kept(size_t plan) const {
  Plan kept = plans_.at(plan).plan;
  PriceWhereMeasured(graph_, costs_, kept, corrections_, plans_[plan].measurement.placement);
  kept.corrections = corrections_;
  return kept;
}

double PlanRace::MovedSeconds(const Plan& plan, const CorePlacement& from, const CorePlacement& to) const {
  if (from == to) return 0;
  return Priced(plan, to).predicted_seconds - Priced(plan, from).predicted_seconds;
}

}  // namespace tilesmith
