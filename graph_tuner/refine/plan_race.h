// Plans of one network that run beside each other, and what running them teaches.
//
// A machine that others share changes its speed within seconds, by half and more. So plans are run by turns,
// in sessions, and a plan is judged turn by turn against another one of its session. Where the host moves the
// cores (layouts/measure/core_placement.h), what a session saw at one distance is brought to the mean of the
// distances by the prices of what crosses, and no sessions count in which two threads shared a core where
// others were seen. Source: original.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph_tuner/costs/corrections.h"
#include "graph_tuner/costs/costs.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/refine/plan_measurement.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// A plan that is known, and how it did.
struct RacingPlan {
  struct Session {
    CorePlacement placement;
    std::vector<double> ratios;  // of every turn, to the first plan of all, in the mean of the distances
  };
  Plan plan;
  PlanMeasurement measurement;  // in its last session
  std::vector<Session> sessions = {};

  bool measured() const { return !sessions.empty(); }
};

class PlanRace {
 public:
  // Makes the plans ready to run and runs them by turns on an otherwise idle machine; one measurement for
  // each.
  using Measure = std::function<std::vector<PlanMeasurement>(const std::vector<const Plan*>&)>;

  // Both outlive it.
  PlanRace(const Graph& graph, CostSource& costs) : graph_(graph), costs_(costs) {}

  const std::vector<RacingPlan>& plans() const { return plans_; }
  // Which of them has these schedules; their number when none has.
  size_t Find(const Plan& plan) const;
  // A plan that comes to run: a new one, or a known one once more, with the prices that it has now. Returns
  // which it is.
  size_t Enter(const Plan& plan);

  // A session of those plans, in the order in which it teaches: what several share is learned from the last
  // of them. The first is the one that the others are held against; it has run before, if any has. What was
  // learned before is forgotten where all plans run, and else believed as far as the first has kept its
  // speed. What `measure` throws leaves everything as it was.
  void Run(std::span<const size_t> which, const Measure& measure);
  // What other plans, measured likewise, showed.
  void Learn(const Plan& plan, const PlanMeasurement& measurement);

  // The median ratio to the first plan of all, of sessions that saw the cores compute as fast as any did; of
  // all where none of the plan's was one. Precondition: it has run.
  double RatioOf(size_t plan) const;
  // The preferred one if it has run and is as fast as others. Precondition: the first plan has run.
  size_t Fastest(size_t preferred) const;

  // The price by what was learned, for cores placed like `at` (PricePlan).
  Plan Priced(Plan plan, const CorePlacement& at = {}) const;
  // As it is to be kept: with what was learned, for where it was measured (PriceWhereMeasured). Precondition:
  // it has run.
  Plan Kept(size_t plan) const;
  const Corrections& corrections() const { return corrections_; }

 private:
  // How much longer the plan takes on cores placed like `to` than like `from`.
  double MovedSeconds(const Plan& plan, const CorePlacement& from, const CorePlacement& to) const;

  const Graph& graph_;
  CostSource& costs_;
  std::vector<RacingPlan> plans_;  // distinct
  Corrections corrections_;
  CorePlacement best_;  // of any session
};

}  // namespace tilesmith
