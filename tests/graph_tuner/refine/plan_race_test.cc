#include "graph_tuner/refine/plan_race.h"

#include <gtest/gtest.h>

#include "tests/graph_tuner/support/fake_machine.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

// Sessions of two at a time, each on a machine of another speed, rank the plans as they truly are.
TEST(PlanRaceTest, SessionsOfSomePlansRankThemAll) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 6);
    SyntheticCosts costs(seed);
    FakeMachine machine(graph, costs, [&](const std::string& node, const std::string& option) {
      return 0.5 + HashFraction(node + option, seed);
    });
    machine.drifts = {1, 3, 0.5};
    PlanRace race(graph, costs);
    for (const uint64_t log_seed : {seed, seed + 1000, seed + 2000}) {
      const std::vector<Record> log = SyntheticLog(graph, {1, 8}, log_seed);
      race.Enter(GraphTune(graph, log, costs, SyntheticOptions()).plan);
    }
    if (race.plans().size() < 3) continue;
    size_t best = 0;
    const auto measure = [&](const std::vector<const Plan*>& plans) { return machine.Measure(plans); };
    for (size_t i = 1; i < race.plans().size(); ++i) {
      const std::vector<size_t> session = {best, i};
      race.Run(session, measure);
      if (race.RatioOf(i) < race.RatioOf(best)) best = i;
    }
    EXPECT_EQ(race.Fastest(best), best);
    const double first = machine.TrueSeconds(race.plans()[0].plan);
    for (size_t i = 0; i < race.plans().size(); ++i) {
      const double truth = machine.TrueSeconds(race.plans()[i].plan);
      EXPECT_NEAR(race.RatioOf(i), truth / first, 1e-9) << i;
      EXPECT_GE(truth, machine.TrueSeconds(race.plans()[best].plan) * (1 - 1e-9));
    }
    // What a plan took in its own session is what it is said to take.
    const RacingPlan& last = race.plans().back();
    EXPECT_NEAR(race.Priced(last.plan).predicted_seconds, last.measurement.seconds,
                1e-9 * last.measurement.seconds);
  }
}

// Sessions on cores near each other and far apart rank plans by what they take in the mean of both.
TEST(PlanRaceTest, SessionsAtAnyDistanceRankPlansByTheMean) {
  const CorePlacement near = {64e-9, 1e-6}, far = {256e-9, 1e-6};
  int swapped = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 6);
    SyntheticCosts costs(seed);
    costs.seconds_per_crossed_byte = 3e-8;
    costs.distance_factors = {{64e-9, 1}, {256e-9, 4}};
    FakeMachine machine(graph, costs, [&](const std::string& node, const std::string& option) {
      return 1 + HashFraction(node + option, seed);
    });
    machine.placements = {near, far};
    PlanRace race(graph, costs);
    for (const double price : {0.0, 2e-8, 2e-7}) {
      SyntheticCosts believed(seed);
      believed.seconds_per_crossed_byte = price;
      race.Enter(GraphTune(graph, SyntheticLog(graph, {1, 8}, seed), believed, SyntheticOptions()).plan);
    }
    if (race.plans().size() < 3) continue;
    const auto measure = [&](const std::vector<const Plan*>& plans) { return machine.Measure(plans); };
    for (const std::vector<size_t>& session : {std::vector<size_t>{0, 1}, std::vector<size_t>{0, 2}})
      race.Run(session, measure);
    // Learned of each plan where it ran, and of plan 0 at both distances.
    for (size_t i = 1; i < 3; ++i) {
      const Plan &plan = race.plans()[i].plan, &first = race.plans()[0].plan;
      EXPECT_NEAR(race.RatioOf(i), machine.TrueSeconds(plan) / machine.TrueSeconds(first), 0.02) << i;
      swapped += (machine.TrueSeconds(plan, near) < machine.TrueSeconds(first, near)) !=
                 (machine.TrueSeconds(plan, far) < machine.TrueSeconds(first, far));
    }
    const Plan kept = race.Kept(2);
    const double seconds = race.plans()[2].measurement.seconds;
    EXPECT_NEAR(kept.predicted_seconds, seconds, 1e-6 * seconds);
    EXPECT_EQ(kept.placement, far);
    EXPECT_EQ(PredictionFor(kept, {270e-9, 1e-6}).seconds, kept.predicted_seconds);
    const PlacedPrediction moved = PredictionFor(kept, near);
    EXPECT_EQ(moved.placement, near);
    EXPECT_LE(moved.seconds, kept.predicted_seconds);
    EXPECT_NEAR(moved.seconds, machine.TrueSeconds(kept, near), 0.02 * moved.seconds);
  }
  EXPECT_GT(swapped, 0);
}

TEST(PlanRaceTest, AFailedSessionChangesNothing) {
  const Graph graph = RandomNetwork(1, 6);
  SyntheticCosts costs(1);
  PlanRace race(graph, costs);
  race.Enter(GraphTune(graph, SyntheticLog(graph, {8}, 1), costs, SyntheticOptions()).plan);
  const std::vector<size_t> session = {0};
  EXPECT_THROW(race.Run(session,
                        [](const std::vector<const Plan*>&) -> std::vector<PlanMeasurement> {
                          throw std::runtime_error("out of order");
                        }),
               std::runtime_error);
  EXPECT_FALSE(race.plans()[0].measured());
  EXPECT_TRUE(race.corrections().empty());
}

}  // namespace
}  // namespace tilesmith
