// The prediction loop: solve, run the plan, compare, correct the costs from what was seen, solve again.
//
// A plan is optimal for the costs it was solved with; whether these hold where the kernels really run is only
// known after running it. Every round teaches what its plans' steps cost in context (corrections.h), and the
// next solution is optimal for the costs as then known. When it is a plan that has run already, and what that
// took agrees with the prediction, there is nothing more to learn.
//
// Rivals are run as well, plans that others would choose: they show what nodes cost in layouts that no
// solution has tried, and what is returned is the fastest of all.
//
// A machine that others share changes its speed within seconds, by half and more. So every round runs all
// plans known by then, by turns: what it teaches was seen under the same conditions, and what earlier rounds
// taught is forgotten. Which plan is the fastest is decided by all rounds and one more, turn by turn against
// the first solution: how a plan's memory happens to lie matters as well, and every round lays it out anew.
// Where the host moves the cores they are judged by the mean of the distances (plan_race.h). If asked to, the
// fastest then tries other configs for its layouts, and what comes out is a plan among the others. Those that
// come within a tenth of the fastest are at last compared once more, as carefully as a plan is with its
// baselines; of those that are then equally fast the one in the least memory is taken. In the same way the
// plan that is returned takes turns with itself, once for its prediction and once to check it. It is then
// held against those it has to beat, and makes way for one that is faster beyond noise. Source: original.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/costs/costs.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/problem/graph_tune.h"
#include "graph_tuner/refine/baselines.h"
#include "graph_tuner/refine/plan_measurement.h"

namespace tilesmith {

struct RivalPlan {
  std::string name;
  Plan plan;
};

struct RefinedPlan;

struct PredictionLoop {
  int rounds = 3;           // at most, not counting what follows the last solution
  double tolerance = 0.05;  // of |measured / predicted - 1|
  double as_fast = 0.01;    // plans that take this much longer than the fastest are equally fast
  std::optional<int64_t> max_weight_bytes = {};  // of solutions and rivals (GraphTune)
  std::vector<RivalPlan> rivals = {};            // run beside the solutions, as those without a template are
  bool baselines = false;                        // run likewise
  // The log, when the fastest plan tries other configs for its layouts (rivals.h); may be null.
  const std::vector<Record>* variants_of = nullptr;
  // When all has to be over, on the clock of NowSeconds. Rounds that would leave too little time for what
  // follows them are left out.
  double end = std::numeric_limits<double>::infinity();
  // Makes the plans ready to run and runs them by turns on an otherwise idle machine; one measurement for
  // each. The text says what for: "round 1 of 3".
  std::function<std::vector<PlanMeasurement>(const std::vector<const Plan*>&, const std::string&)> measure;
  // How many times longer than the first each of the plans takes, the first's 1, found more carefully than by
  // `measure`: with the plans made ready several times. Asked for with those that may be the fastest; may be
  // empty.
  std::function<std::vector<double>(const std::vector<const Plan*>&)> compare = {};
  // Holds the plan that is to be returned against others. One of the rivals if that is faster beyond noise:
  // it takes the plan's place, and is held against the others itself. May be empty.
  std::function<std::optional<Plan>(const RefinedPlan&)> challenge = {};
  // Told the best plan so far: the first solution before it runs, then the fastest after every session. May
  // be empty.
  std::function<void(const Plan&)> keep = {};
};

// A plan in the round it was made for.
struct LoopRound {
  std::string name;              // "solution 1", or the rival's, or "configs in context"
  double predicted_seconds = 0;  // before the round; 0: not known
  double measured_seconds = 0;   // 0 of one that was stopped before
  double disturbed_share = 0;    // PlanMeasurement's
  int64_t bytes = 0;             // of its weights, activations and scratch
  std::vector<std::string>
      changed;  // nodes scheduled otherwise than in the solution before; in the first: none
  // Its time / the chosen plan's, by turns, as the choice was made: in the comparison of those nearly as fast
  // as the fastest, of others in all sessions. `measured_seconds` is of one session, and of different ones
  // for plans of different rounds. 0: not known.
  double ratio = 0;
  std::string note = {};  // what decided: "compared once more", "as fast as the fastest, in less memory", ...
};

struct RefinedPlan {
  Plan plan;              // the fastest; predicted is what its steps take, corrections what all plans do
  size_t round = 0;       // which of `rounds` it is; meaningless without rounds
  bool settled = false;   // the last solution had run already, as predicted
  PlanMeasurement check;  // of the plan; nothing of it went into the prediction
  std::vector<LoopRound> rounds;  // rivals too
  std::vector<PlannedBaseline> baselines;
  GraphTuneResult solved;    // the last solution, for its size
  double solve_seconds = 0;  // that it took
  // False when it was stopped: the plan is the fastest by the sessions that were over by then, `check` what
  // the last of them showed; before the first it is the solution, and the check empty.
  bool finished = true;
};

// With 0 rounds nothing is learned: the first solution with its uncorrected prediction, and the check. Errors
// are GraphTune's. The callbacks' exceptions go through, but for Error(kInterrupted) once there is a
// solution.
RefinedPlan RefinePlan(const NetworkProblem& problem, CostSource& costs, const PredictionLoop& loop);

}  // namespace tilesmith
