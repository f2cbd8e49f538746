// Plans of one network, run on this machine by turns.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "graph_tuner/planner/network_run.h"
#include "graph_tuner/planner/work.h"
#include "graph_tuner/refine/baselines.h"
#include "graph_tuner/refine/plan_measurement.h"
#include "layouts/measure/duel.h"

namespace tilesmith {

// What they run on, and until when: all of these throw Error(kInterrupted) when that is over, between two
// runs, or when they are stopped, at the next stage of the network.
struct PlanRuns {
  const Graph& graph;
  const DevicePtr& machine;
  WorkLimit limit = {};
  std::function<void()> between = {};  // called between turns
  // When ComparePlans should be over, on the clock of NowSeconds: its rounds get fewer and shorter for
  // it, and of its duels one is held whatever the time.
  double hurry_end = std::numeric_limits<double>::infinity();
};

// One measurement for each, for about `seconds` each and at least a few turns of each (of few plans more), in
// turns of some plain runs and some profiled ones, so that what drifts touches plans, whole runs and steps
// alike. A turn's figure is the median of its plain runs, `seconds` and those of the steps are the medians of
// the turns. Of the rounds, in which every plan has one turn, only comparable ones count
// (layouts/measure/rounds.h); where the cores move, up to twice as many are held, with up to twice as many
// turns.
std::vector<PlanMeasurement> MeasurePlans(const PlanRuns& where, const std::vector<const Plan*>& plans,
                                          double seconds);

struct GraphPlan {
  const Graph* graph;
  const Plan* plan;
};

// A duel of all plans. It is held so many times, for about `seconds` for each plan, the plans made ready
// anew, since how their memory happens to lie is part of what they take.
constexpr int kPlanDuels = 3;
Duel ComparePlans(const PlanRuns& where, const std::vector<const Plan*>& plans, double seconds,
                  const CorePlacement& preferred = {});
// The same of plans of several graphs; `where`'s own does not count.
Duel ComparePlans(const PlanRuns& where, const std::vector<GraphPlan>& plans, double seconds,
                  const CorePlacement& preferred = {});

// A plan beside its baselines: each of them executed, in turns with the plan.
struct BaselineRun {
  PlannedBaseline baseline;
  double seconds = 0;      // 0 when it was not run
  PairedRatio ratio = {};  // its seconds / the plan's
};

struct BaselineRuns {
  std::vector<BaselineRun> runs;
  double plan_seconds = 0;  // of the plan in the same turns; 0 when no baseline was run
};

// A duel of them all and the plan, for about `seconds` each.
BaselineRuns RunBaselines(const PlanRuns& where, const Plan& plan,
                          const std::vector<PlannedBaseline>& baselines, double seconds);

// The fastest of the baselines that are faster than the plan beyond noise: their 95% intervals lie below the
// plan. None if there is no such baseline.
std::optional<Plan> FasterThanThePlan(const std::vector<BaselineRun>& runs);

}  // namespace tilesmith
