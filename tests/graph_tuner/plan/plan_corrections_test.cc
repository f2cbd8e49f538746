#include "graph_tuner/plan/plan_corrections.h"

#include <gtest/gtest.h>

#include "graph_tuner/graph_tune.h"
#include "graph_tuner/plan/price_plan.h"
#include "tests/graph_tuner/support/explain_sample.h"

namespace tilesmith {
namespace {

// Costs in context: every price of a network that was "run" is off by a random factor.
Corrections RandomCorrections(const Graph& graph, const Plan& plan, CostSource& costs, uint64_t seed) {
  Plan run = plan;
  for (NodePlan& node : run.nodes) node.predicted_seconds *= 0.5 + HashFraction(node.node, seed);
  for (TransformPlan& transform : run.transforms)
    transform.predicted_seconds *= 0.5 + HashFraction(transform.tensor, seed);
  return CorrectionsOf(graph, run, costs);
}

TEST(PlanCorrections, APlanCostsWhatItSays) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 6);
    const std::vector<Record> log = SyntheticLog(graph, {1, 8}, seed);
    SyntheticCosts costs(seed);
    GraphTuneOptions options = SyntheticOptions();
    const Plan first = GraphTune(graph, log, costs, options).plan;
    options.corrections = RandomCorrections(graph, first, costs, seed);
    const Plan plan = GraphTune(graph, log, costs, options).plan;
    // What the second plan says of itself is all that is known now, and it is still the same plan.
    Plan again = plan;
    PricePlan(graph, costs, again, CorrectionsOf(graph, plan, costs));
    EXPECT_NEAR(again.predicted_seconds, plan.predicted_seconds, 1e-12 * plan.predicted_seconds);
    for (size_t i = 0; i < plan.nodes.size(); ++i)
      EXPECT_EQ(again.nodes[i].predicted_seconds, plan.nodes[i].predicted_seconds) << plan.nodes[i].node;
  }
}

TEST(PlanCorrections, WhatThePlanCarriesComesBeforeWhatItSays) {
  const Graph graph = RandomNetwork(1, 6);
  SyntheticCosts costs(1);
  Plan plan = GraphTune(graph, SyntheticLog(graph, {1, 8}, 1), costs, SyntheticOptions()).plan;
  plan.corrections = CorrectionsOf(graph, plan, costs).Scaled(3);
  Plan again = plan;
  PricePlan(graph, costs, again, CorrectionsOf(graph, plan, costs));
  EXPECT_NEAR(again.predicted_seconds, 3 * plan.predicted_seconds, 1e-12 * again.predicted_seconds);
}

TEST(PlanCorrections, APlanThatNeverRanCorrectsNothing) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 6);
    const std::vector<Record> log = SyntheticLog(graph, {1, 8}, seed);
    SyntheticCosts costs(seed);
    GraphTuneOptions options = SyntheticOptions();
    const Plan plan = GraphTune(graph, log, costs, options).plan;
    options.corrections = CorrectionsOf(graph, plan, costs);
    EXPECT_NEAR(GraphTune(graph, log, costs, options).plan.predicted_seconds, plan.predicted_seconds,
                1e-12 * plan.predicted_seconds);
    options.uniform = Layout::Blocked(8);
    const double uniform = GraphTune(graph, log, costs, options).plan.predicted_seconds;
    options.corrections = {};
    EXPECT_NEAR(GraphTune(graph, log, costs, options).plan.predicted_seconds, uniform, 1e-12 * uniform);
  }
}

}  // namespace
}  // namespace tilesmith
