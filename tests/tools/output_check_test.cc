#include "tools/peers/output_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph_tuner/executor/heuristic_plan.h"
#include "layouts/base/error.h"
#include "tools/network/outputs.h"

namespace tilesmith {
namespace {

TEST(OutputCheck, PlansBesideTheReference) {
  const ModelOptions model{.model = "squeezenet1_1", .batch = 0, .input_shapes = {"input=1x3x48x48"}};
  const Graph graph = LoadModel(model);
  const DevicePtr machine = OpenDevice(DetectCpu(), 1);
  const Plan plan = HeuristicPlan(graph, machine->target(), 1);
  const std::vector<PlanToCheck> plans = {{"the plan", &plan, ""}, {"another", nullptr, "the same"}};
  const OutputCheck check = CheckOutputs(model, graph, plans, machine, "", nullptr);
  EXPECT_EQ(check.expected_from, "the reference");
  ASSERT_EQ(check.differences.size(), 2u);
  EXPECT_LE(check.differences[0], 1e-4);
  EXPECT_EQ(check.allowed[0], kAllowedOutputDifference);
  EXPECT_EQ(check.wrong[0], "");
  EXPECT_NO_THROW(RequireAlike(plans, check));
}

TEST(OutputCheck, MoreIsAllowedWhereTheNetworkAmplifiesRounding) {
  const std::vector<PlanToCheck> plans = {{"the plan", nullptr, ""}};
  EXPECT_NO_THROW(RequireAlike(plans, {"the reference", {2e-3}, {1e-2}, {""}}));
  try {
    RequireAlike(plans, {"the reference", {2e-3}, {1e-2}, {"step \"conv1\" (direct)"}});
    ADD_FAILURE() << "a wrong step is let through";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("; step \"conv1\" (direct)"));
  }
}

TEST(OutputCheck, WhatOthersDifferFromThemselvesIsAllowedTwice) {
  EXPECT_EQ(AllowedBesideOthers(0, 0), kAllowedOutputDifference);
  EXPECT_DOUBLE_EQ(AllowedBesideOthers(1e-3), 16e-3);
  EXPECT_DOUBLE_EQ(AllowedBesideOthers(1e-5, 5e-3), 1e-2);
  EXPECT_DOUBLE_EQ(AllowedBesideOthers(1e-3, 5e-3), 16e-3);
  EXPECT_DOUBLE_EQ(AllowedBesideOthers(1e-3, INFINITY), 16e-3);
}

TEST(OutputCheck, NamesThePlanThatDiffers) {
  const std::vector<PlanToCheck> plans = {{"the plan", nullptr, ""}, {"NHWC everywhere", nullptr, ""}};
  for (const double difference :
       {2e-3, static_cast<double>(INFINITY), std::numeric_limits<double>::quiet_NaN()}) {
    try {
      RequireAlike(plans, {"the reference", {9e-4, difference}, {1e-3, 1e-3}, {"", ""}});
      ADD_FAILURE() << difference << " is let through";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kWrongAnswer);
      EXPECT_THAT(error.what(), testing::StartsWith("NHWC everywhere: outputs differ"));
    }
  }
}

TEST(OutputCheck, TheLargestDifferenceOfAnyOutput) {
  const auto tensor = [](float first, float second) {
    Tensor t({2});
    t.floats()[0] = first;
    t.floats()[1] = second;
    return t;
  };
  const std::vector<NamedTensor> expected = {{"a", tensor(1, 4)}, {"b", tensor(2, -2)}};
  EXPECT_EQ(LargestDifference(expected, expected), 0);
  EXPECT_FLOAT_EQ(
      static_cast<float>(LargestDifference({{"a", tensor(1, 3)}, {"b", tensor(2, -1)}}, expected)), 0.5f);
  EXPECT_FALSE(std::isfinite(LargestDifference({{"a", tensor(NAN, 4)}, {"b", tensor(2, -2)}}, expected)));
  const std::vector<NamedTensor> nan = {{"a", tensor(NAN, INFINITY)}};
  EXPECT_EQ(LargestDifference(nan, nan), 0);
}

}  // namespace
}  // namespace tilesmith
