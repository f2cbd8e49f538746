// Which baseline beats the plan, by ratios that are made up.
#include "tools/network/baseline_runs.h"

#include <gtest/gtest.h>

namespace tilesmith {
namespace {

BaselineRun RunOf(const std::string& name, double median, double high) {
  Plan plan;
  plan.network = name;
  return {{name, plan, ""}, 1, {.median = median, .low = median - 0.02, .high = high}};
}

TEST(BaselineRuns, OneThatIsFasterBeyondNoiseBeatsThePlan) {
  EXPECT_FALSE(FasterThanThePlan({}));
  EXPECT_FALSE(FasterThanThePlan({RunOf("slower", 1.1, 1.2), RunOf("maybe faster", 0.9, 1.0)}));
  const BaselineRun did_not_run{{"none", std::nullopt, "no candidate"}, 0, {}};
  EXPECT_FALSE(FasterThanThePlan({did_not_run}));
  const std::vector<BaselineRun> runs = {RunOf("maybe", 0.8, 1.01), RunOf("faster", 0.95, 0.99),
                                         RunOf("fastest", 0.93, 0.995), did_not_run};
  EXPECT_EQ(FasterThanThePlan(runs).value().network, "fastest");
}

}  // namespace
}  // namespace tilesmith
