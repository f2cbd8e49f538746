#include "graph_tuner/plan/plan.h"

#include <gtest/gtest.h>

namespace tilesmith {
namespace {

NodePlan Conv(double seconds, double crossing_seconds) {
  NodePlan node;
  node.record.emplace();
  node.predicted_seconds = seconds;
  node.crossing_seconds = crossing_seconds;
  return node;
}

TEST(KnownPrediction, IsNoneWhereAConvolutionHasNoTime) {
  Plan plan;
  plan.predicted_seconds = 3e-3;
  plan.nodes = {Conv(2e-3, 1e-4), NodePlan()};
  EXPECT_EQ(KnownPrediction(plan), 3e-3);
  plan.nodes.push_back(Conv(1e-4, 1e-4));  // only what it waits for has a price
  EXPECT_EQ(KnownPrediction(plan), 0);
}

Plan OfTwoNodes() {
  Plan plan;
  plan.graph_hash = "0123456789abcdef";
  plan.nodes = {Conv(2e-3, 0), Conv(1e-3, 0)};
  plan.nodes[0].node = "a", plan.nodes[1].node = "b";
  return plan;
}

TEST(Plan, RegionsAreSchedules) {
  const Plan plain = OfTwoNodes();
  Plan one = plain, other = plain;
  one.regions = other.regions = {{4}};
  for (Plan* plan : {&one, &other})
    for (NodePlan& node : plan->nodes) node.region = 1;
  EXPECT_TRUE(SameSchedules(one, other));
  EXPECT_EQ(PlanHash(one), PlanHash(other));
  EXPECT_FALSE(SameSchedules(one, plain));
  EXPECT_NE(PlanHash(one), PlanHash(plain));
  other.regions[0].band_rows = 2;
  EXPECT_FALSE(SameSchedules(one, other));
  EXPECT_NE(PlanHash(one), PlanHash(other));
  other = one;
  other.nodes[1].region = 0;
  EXPECT_FALSE(SameSchedules(one, other));
  EXPECT_NE(PlanHash(one), PlanHash(other));
  EXPECT_TRUE(SameSchedules(WithoutRegions(one), plain));
  EXPECT_EQ(PlanHash(WithoutRegions(one)), PlanHash(plain));
}

}  // namespace
}  // namespace tilesmith
