#include "graph_tuner/refine/prediction_loop.h"

#include <gtest/gtest.h>

#include <memory>

#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/problem/graph_tune.h"
#include "layouts/measure/clock.h"
#include "tests/graph_tuner/support/fake_machine.h"
#include "tests/graph_tuner/support/plan_enumerator.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

// A network with a log, prices, and a loop over a fake machine.
class PredictionLoopTest : public testing::Test {
 protected:
  void Make(uint64_t seed, int nodes) {
    graph_ = RandomNetwork(seed, nodes);
    log_ = SyntheticLog(graph_, {1, 8}, seed);
    costs_ = std::make_unique<SyntheticCosts>(seed);
    options_.cpu = SyntheticCpu();
    options_.threads = 2;
  }

  NetworkProblem Problem() const { return {graph_, log_, *costs_, options_}; }

  // One layout wherever possible, by the log's prices.
  RivalPlan UniformRival(const Layout& layout) const {
    return {layout.ToString(), GraphTune(Problem().Restricted({.uniform = layout})).plan};
  }

  RefinedPlan Refine(FakeMachine& machine, int rounds) {
    PredictionLoop loop;
    loop.rounds = rounds;
    loop.measure = [&](const std::vector<const Plan*>& plans, const std::string&) {
      return machine.Measure(plans);
    };
    loop.rivals = rivals_;
    loop.challenge = challenge_;
    return RefinePlan(Problem(), *costs_, loop);
  }

  double Optimum(const FakeMachine& machine) const {
    double best = kForbidden;
    PlanEnumerator(graph_, FindCandidates(graph_, log_, options_.cpu, options_.threads))
        .ForEach([&](Plan& plan) { best = std::min(best, machine.TrueSeconds(plan)); });
    return best;
  }

  Graph graph_;
  std::vector<Record> log_;
  std::unique_ptr<SyntheticCosts> costs_;
  GraphTuneOptions options_;
  std::vector<RivalPlan> rivals_;
  std::function<std::optional<Plan>(const RefinedPlan&)> challenge_;
};

TEST_F(PredictionLoopTest, FindsTheOptimumWhereNodesAreSlowedAsAWhole) {
  int changed = 0, settled = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed, 3 + static_cast<int>(seed % 3));
    // A concat that is not run at all teaches nothing about running it.
    FakeMachine machine(graph_, *costs_, [&](const std::string& node, const std::string& option) {
      const bool known = graph_.node(*graph_.Find(node)).op->Type() == "Concat" || option.starts_with("to ");
      return known ? 1 : 0.4 + 4 * HashFraction(node, seed);
    });
    const RefinedPlan refined = Refine(machine, 3);
    EXPECT_NEAR(machine.TrueSeconds(refined.plan), Optimum(machine), 1e-9);
    EXPECT_TRUE(refined.settled);
    EXPECT_LE(refined.rounds.size(), 2u);
    changed += refined.rounds.size() == 2 && !refined.rounds[1].changed.empty();
    settled += refined.settled;
  }
  EXPECT_GT(changed, 10);
  EXPECT_EQ(settled, 60);
}

TEST_F(PredictionLoopTest, NeverEndsWorseThanItBeganAndPredictsWhatIsMeasured) {
  int better = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed, 4 + static_cast<int>(seed % 10));
    FakeMachine machine(graph_, *costs_, [&](const std::string& node, const std::string& option) {
      return (0.5 + HashFraction(node, seed)) * (0.6 + HashFraction(node + option, seed));
    });
    const int rounds = 1 + static_cast<int>(seed % 4);
    const RefinedPlan refined = Refine(machine, rounds);
    ASSERT_GE(refined.rounds.size(), 1u);
    EXPECT_LE(refined.rounds.size(), static_cast<size_t>(rounds));
    // Each round runs all that is known, then all run once more, then what is returned with itself.
    const size_t rounds_run = refined.rounds.size(), comparisons = machine.sessions.end()[-2].size() > 1;
    ASSERT_EQ(machine.sessions.size(), rounds_run + comparisons + 1);
    const double truth = machine.TrueSeconds(refined.plan);
    for (size_t round = 0; round < refined.rounds.size(); ++round) {
      EXPECT_LE(machine.sessions[round].size(), round + 1);
      for (const Plan& plan : machine.sessions[round]) EXPECT_LE(truth, machine.TrueSeconds(plan));
    }
    ASSERT_EQ(machine.sessions.back().size(), 2u);
    for (const Plan& plan : machine.sessions.back()) EXPECT_TRUE(SameSchedules(plan, refined.plan));
    better += truth < machine.TrueSeconds(machine.sessions[0][0]);
    EXPECT_NEAR(refined.plan.predicted_seconds, truth, 1e-9 * truth);
    EXPECT_NEAR(refined.check.seconds, truth, 1e-9 * truth);
    double parts = 0;
    for (const NodePlan& node : refined.plan.nodes) parts += node.predicted_seconds;
    for (const TransformPlan& transform : refined.plan.transforms) parts += transform.predicted_seconds;
    EXPECT_NEAR(parts, truth, 1e-9 * truth);
  }
  EXPECT_GT(better, 20);
}

// Every other round is timed while the machine is slow: by its figures the first solution would win.
TEST_F(PredictionLoopTest, DriftBetweenRoundsDecidesNothing) {
  int improved = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed, 4 + static_cast<int>(seed % 6));
    FakeMachine machine(graph_, *costs_, [&](const std::string& node, const std::string&) {
      return 0.4 + 4 * HashFraction(node, seed);
    });
    machine.drifts = {1, 4};
    const RefinedPlan refined = Refine(machine, 3);
    for (const std::vector<Plan>& session : machine.sessions)
      for (const Plan& plan : session)
        EXPECT_LE(machine.TrueSeconds(refined.plan), machine.TrueSeconds(plan));
    improved += refined.round > 0;
  }
  EXPECT_GT(improved, 5);
}

// Two threads on one core favour another plan: what was seen then does not count where each has its own.
TEST_F(PredictionLoopTest, RoundsWithThreadsOnOneCoreDecideNothing) {
  int different = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed, 4 + static_cast<int>(seed % 6));
    const auto factor = [&](const std::string& node, const std::string& option) {
      return 0.4 + 4 * HashFraction(node + option, seed);
    };
    FakeMachine machine(graph_, *costs_, factor);
    FakeMachine shared(graph_, *costs_, [&](const std::string& node, const std::string& option) {
      return 10 / factor(node, option);
    });
    PredictionLoop loop;
    loop.rounds = 2;
    int sessions = 0;
    std::vector<Plan> seen;
    loop.measure = [&](const std::vector<const Plan*>& plans, const std::string&) {
      const bool is_shared = sessions++ % 2 == 0;
      auto measurements = (is_shared ? shared : machine).Measure(plans);
      for (PlanMeasurement& measurement : measurements)
        measurement.placement = {1e-7, is_shared ? 4e-6 : 2e-6};
      for (const Plan* plan : plans) seen.push_back(*plan);
      return measurements;
    };
    const RefinedPlan refined = RefinePlan(Problem(), *costs_, loop);
    for (const Plan& plan : seen) {
      EXPECT_LE(machine.TrueSeconds(refined.plan), machine.TrueSeconds(plan) * (1 + 1e-9));
      different += shared.TrueSeconds(plan) < shared.TrueSeconds(refined.plan);
    }
  }
  EXPECT_GT(different, 10);
}

// Turns that tell plans apart by a few percent may be wrong about them.
TEST_F(PredictionLoopTest, ThoseThatAreNearlyTheFastestAreComparedOnceMore) {
  int corrected = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed, 4);
    FakeMachine machine(graph_, *costs_, [&](const std::string& node, const std::string& option) {
      return 1 + 0.3 * HashFraction(node + option, seed);
    });
    const double optimum = Optimum(machine);
    std::vector<RivalPlan> close;
    PlanEnumerator(graph_, FindCandidates(graph_, log_, options_.cpu, options_.threads))
        .ForEach([&](Plan& plan) {
          PricePlan(graph_, *costs_, plan);
          if (close.size() < 8 && machine.TrueSeconds(plan) < 1.08 * optimum)
            close.push_back({"close", plan});
        });
    PredictionLoop loop;
    loop.rivals = close;
    loop.measure = [&](const std::vector<const Plan*>& plans, const std::string&) {
      std::vector<PlanMeasurement> measurements = machine.Measure(plans);
      for (size_t i = 0; i < measurements.size(); ++i) {
        const double wrong = 1 + 0.2 * HashFraction(std::to_string(i), seed);
        measurements[i].seconds *= wrong;
        for (double& turn : measurements[i].turns) turn *= wrong;
      }
      return measurements;
    };
    const double without = machine.TrueSeconds(RefinePlan(Problem(), *costs_, loop).plan);
    double least = kForbidden;
    loop.compare = [&](const std::vector<const Plan*>& plans) {
      EXPECT_GT(plans.size(), 1u);
      EXPECT_LE(plans.size(), 5u);
      std::vector<double> ratios;
      for (const Plan* plan : plans) {
        ratios.push_back(machine.TrueSeconds(*plan) / machine.TrueSeconds(*plans[0]));
        least = std::min(least, machine.TrueSeconds(*plan));
      }
      return ratios;
    };
    const double with = machine.TrueSeconds(RefinePlan(Problem(), *costs_, loop).plan);
    if (least < kForbidden) {
      EXPECT_NEAR(with, least, 1e-12);
    }
    EXPECT_LE(with, without * (1 + 1e-9));
    corrected += with < without * (1 - 1e-9);
  }
  EXPECT_GT(corrected, 5);
}

// Two rivals differ from the solution by half a percent and by two; both need less memory.
TEST_F(PredictionLoopTest, OfEquallyFastPlansTheSmallestIsTaken) {
  Make(3, 8);
  FakeMachine machine(graph_, *costs_, [](const std::string&, const std::string&) { return 1.0; });
  PredictionLoop loop;
  loop.rounds = 1;
  loop.rivals = {UniformRival(Layout::Nchw()), UniformRival(Layout::Blocked(8))};
  loop.measure = [&](const std::vector<const Plan*>& plans, const std::string&) {
    std::vector<PlanMeasurement> same(plans.size(), machine.Measure(plans).at(0));
    for (size_t i = 0; i < plans.size(); ++i) same[i].bytes = 300 - 100 * static_cast<int64_t>(i % 3);
    return same;
  };
  const auto chosen = [&](const std::vector<double>& ratios) {
    loop.compare = [&](const std::vector<const Plan*>& plans) {
      EXPECT_EQ(plans.size(), ratios.size());
      return ratios;
    };
    return RefinePlan(Problem(), *costs_, loop);
  };
  const RefinedPlan refined = chosen({1, 1.005, 1.02});
  EXPECT_EQ(refined.round, 1u);
  EXPECT_EQ(refined.rounds.at(1).bytes, 200);
  // What decided is told, of measured times that say nothing of the kind.
  const std::vector<double> ratios = {1 / 1.005, 1, 1.02 / 1.005};
  for (size_t i = 0; i < ratios.size(); ++i) {
    EXPECT_DOUBLE_EQ(refined.rounds[i].ratio, ratios[i]) << i;
    EXPECT_EQ(refined.rounds[i].note,
              i == 1 ? "as fast as the fastest, in less memory" : "compared once more");
  }
  EXPECT_EQ(chosen({1, 1.02, 1.005}).round, 2u);
  EXPECT_EQ(chosen({1, 1.02, 1.03}).round, 0u);
  EXPECT_EQ(chosen({1.009, 1, 1.01}).round, 2u);
}

TEST_F(PredictionLoopTest, PredictionAndCheckAreOfTheSameMinutes) {
  Make(7, 8);
  FakeMachine machine(graph_, *costs_, [](const std::string&, const std::string&) { return 1.5; });
  machine.drifts = {1, 2};
  const RefinedPlan refined = Refine(machine, 1);
  ASSERT_EQ(machine.sessions.size(), 2u);
  EXPECT_NEAR(refined.check.seconds, 2 * machine.TrueSeconds(refined.plan), 1e-9);
  EXPECT_NEAR(refined.plan.predicted_seconds, refined.check.seconds, 1e-9);
}

// Options that no solution would have tried are tried by the rivals, one layout everywhere.
TEST_F(PredictionLoopTest, LearnsFromRivalsAndIsNeverSlowerThanOne) {
  int better = 0, rivals_ran = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed, 4 + static_cast<int>(seed % 8));
    FakeMachine machine(graph_, *costs_, [&](const std::string& node, const std::string& option) {
      return 0.3 + 3 * HashFraction(node + option, seed);
    });
    const double alone = machine.TrueSeconds(Refine(machine, 3).plan);
    rivals_ = {UniformRival(Layout::Nchw()), UniformRival(Layout::Blocked(8))};
    const RefinedPlan refined = Refine(machine, 3);
    const double truth = machine.TrueSeconds(refined.plan);
    for (const RivalPlan& rival : rivals_) EXPECT_LE(truth, machine.TrueSeconds(rival.plan));
    EXPECT_NEAR(refined.plan.predicted_seconds, truth, 1e-9 * truth);
    EXPECT_EQ(refined.rounds[0].name, "solution 1");
    for (const LoopRound& round : refined.rounds) rivals_ran += round.name.starts_with("NCHW");
    better += truth < alone;
    rivals_.clear();
  }
  EXPECT_GT(better, 5);
  EXPECT_GT(rivals_ran, 100);
}

// Whatever the machine's speed was when all ran and when the prediction was made.
TEST_F(PredictionLoopTest, ThePlanKnowsWhatItsRivalsTake) {
  int rivals_priced = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed, 4 + static_cast<int>(seed % 8));
    FakeMachine machine(graph_, *costs_, [&](const std::string& node, const std::string& option) {
      return 0.3 + 3 * HashFraction(node + option, seed);
    });
    machine.drifts = {1, 3, 0.5};
    rivals_ = {UniformRival(Layout::Nchw())};
    const RefinedPlan refined = Refine(machine, 2);
    const double drift = refined.plan.predicted_seconds / machine.TrueSeconds(refined.plan);
    for (Plan plan : {refined.plan, rivals_[0].plan}) {
      PricePlan(graph_, *costs_, plan, refined.plan.corrections);
      EXPECT_NEAR(plan.predicted_seconds, drift * machine.TrueSeconds(plan), 1e-9 * plan.predicted_seconds);
    }
    rivals_priced += drift != 1 && !SameSchedules(refined.plan, rivals_[0].plan);
  }
  EXPECT_GT(rivals_priced, 10);
}

// The rounds are wrong about a rival; the challenge is not.
TEST_F(PredictionLoopTest, ARivalThatIsFasterTakesThePlansPlace) {
  for (const int wins : {0, 1, 2, 3, 9}) {
    SCOPED_TRACE(testing::Message() << wins << " challenges won");
    Make(3, 8);
    FakeMachine machine(graph_, *costs_, [](const std::string&, const std::string&) { return 2.0; });
    rivals_ = {UniformRival(Layout::Nchw()), UniformRival(Layout::Blocked(8))};
    ASSERT_FALSE(SameSchedules(rivals_[0].plan, rivals_[1].plan));
    int challenges = 0;
    challenge_ = [&](const RefinedPlan& refined) -> std::optional<Plan> {
      EXPECT_NEAR(refined.plan.predicted_seconds, machine.TrueSeconds(refined.plan), 1e-9);
      EXPECT_NEAR(refined.check.seconds, machine.TrueSeconds(refined.plan), 1e-9);
      if (challenges > 0) {
        EXPECT_TRUE(SameSchedules(refined.plan, rivals_[challenges % 2].plan));
      }
      if (challenges == wins) return std::nullopt;
      return rivals_[++challenges % 2].plan;
    };
    const RefinedPlan refined = Refine(machine, 2);
    EXPECT_EQ(challenges, std::min(wins, 3));
    const int replaced = std::min(wins, 2);
    if (replaced > 0) {
      EXPECT_TRUE(SameSchedules(refined.plan, rivals_[replaced % 2].plan));
      EXPECT_EQ(refined.rounds[refined.round].name, rivals_[replaced % 2].name);
    }
  }
}

TEST_F(PredictionLoopTest, WithoutRoundsNothingReplacesTheSolution) {
  Make(5, 8);
  FakeMachine machine(graph_, *costs_, [](const std::string&, const std::string&) { return 2.0; });
  const Plan solution = GraphTune(graph_, log_, *costs_, options_).plan;
  int challenges = 0;
  challenge_ = [&](const RefinedPlan& refined) {
    ++challenges;
    return refined.plan;
  };
  EXPECT_TRUE(SameSchedules(Refine(machine, 0).plan, solution));
  EXPECT_EQ(challenges, 1);
}

TEST_F(PredictionLoopTest, WithoutRoundsTheLogIsBelieved) {
  Make(5, 8);
  FakeMachine machine(graph_, *costs_, [](const std::string&, const std::string&) { return 2.0; });
  const RefinedPlan refined = Refine(machine, 0);
  EXPECT_TRUE(refined.rounds.empty());
  EXPECT_TRUE(refined.plan.corrections.empty());
  EXPECT_FALSE(refined.settled);
  ASSERT_EQ(machine.sessions.size(), 1u);
  EXPECT_EQ(machine.sessions[0].size(), 1u);
  EXPECT_NEAR(refined.check.seconds, 2 * refined.plan.predicted_seconds, 1e-9);
}

// A plan that runs again is a round like any other, until it takes what is predicted.
TEST_F(PredictionLoopTest, RunsAPlanAgainWhosePredictionWasWrong) {
  Make(5, 8);
  FakeMachine machine(graph_, *costs_, [](const std::string&, const std::string&) { return 1.0; });
  PredictionLoop loop;
  loop.rounds = 5;
  const Plan plan = GraphTune(graph_, log_, *costs_, options_).plan;
  // Runs whose steps nobody timed, so that nothing is learned from them.
  loop.measure = [&](const std::vector<const Plan*>& plans, const std::string&) {
    std::vector<PlanMeasurement> measurements = machine.Measure(plans);
    for (PlanMeasurement& measurement : measurements) {
      measurement.steps.clear();
      if (machine.sessions.size() < 3) measurement.seconds *= 2;
      if (machine.sessions.size() == 3) measurement.seconds *= 1.04;
    }
    return measurements;
  };
  const RefinedPlan refined = RefinePlan(Problem(), *costs_, loop);
  EXPECT_TRUE(refined.settled);
  ASSERT_EQ(refined.rounds.size(), 3u);
  EXPECT_EQ(refined.round, 2u);
  EXPECT_TRUE(refined.rounds[2].changed.empty());
  EXPECT_DOUBLE_EQ(refined.rounds[2].predicted_seconds, plan.predicted_seconds);
  EXPECT_NEAR(refined.plan.predicted_seconds, plan.predicted_seconds, 1e-9 * plan.predicted_seconds);
}

// Stopped in any session: the plan is the fastest of those that had run, and was kept before.
TEST_F(PredictionLoopTest, StoppedItReturnsTheBestSoFar) {
  int improved = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    for (size_t sessions = 0; sessions < 5; ++sessions) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", stopped after " << sessions);
      Make(seed, 4 + static_cast<int>(seed % 6));
      FakeMachine machine(graph_, *costs_, [&](const std::string& node, const std::string& option) {
        return 0.3 + 3 * HashFraction(node + option, seed);
      });
      std::vector<Plan> kept;
      PredictionLoop loop;
      loop.rivals = {UniformRival(Layout::Nchw())};
      loop.keep = [&](const Plan& plan) { kept.push_back(plan); };
      loop.measure = [&](const std::vector<const Plan*>& plans, const std::string& what) {
        EXPECT_NE(what, "");
        EXPECT_FALSE(kept.empty());
        if (machine.sessions.size() == sessions) throw Error(ErrorCode::kInterrupted, "interrupted");
        return machine.Measure(plans);
      };
      const RefinedPlan refined = RefinePlan(Problem(), *costs_, loop);
      EXPECT_TRUE(SameSchedules(refined.plan, kept.back()));
      EXPECT_EQ(refined.check.seconds > 0, sessions > 0);
      if (refined.finished) continue;
      for (const std::vector<Plan>& session : machine.sessions)
        for (const Plan& plan : session)
          EXPECT_LE(machine.TrueSeconds(refined.plan), machine.TrueSeconds(plan) * (1 + 1e-9));
      improved += !SameSchedules(refined.plan, kept.front());
    }
  }
  EXPECT_GT(improved, 5);
}

// A first round that used up the time is the last one.
TEST_F(PredictionLoopTest, RoundsThereIsNoTimeForAreLeftOut) {
  Make(5, 8);
  FakeMachine machine(graph_, *costs_, [&](const std::string& node, const std::string& option) {
    return 0.3 + 3 * HashFraction(node + option, 5);
  });
  std::vector<std::string> purposes;
  PredictionLoop loop;
  loop.end = NowSeconds();
  loop.measure = [&](const std::vector<const Plan*>& plans, const std::string& what) {
    purposes.push_back(what);
    return machine.Measure(plans);
  };
  EXPECT_TRUE(RefinePlan(Problem(), *costs_, loop).finished);
  ASSERT_EQ(purposes.size(), 2u);
  EXPECT_EQ(purposes[0], "round 1 of 3");
  EXPECT_EQ(purposes[1], "the plan once more");
}

}  // namespace
}  // namespace tilesmith
