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
