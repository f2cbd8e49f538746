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

}  // namespace
}  // namespace tilesmith
