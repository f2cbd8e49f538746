// Which baseline beats the plan, and their table, by figures that are made up.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/network/prediction_report.h"

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

TEST(BaselineRuns, TheTableHasTheTimesOfTheSameTurns) {
  const BaselineRun did_not_run{{"none", std::nullopt, "no candidate"}, 0, {}};
  BaselineRun slower = RunOf("slower", 1.25, 1.3);
  slower.seconds = 2.5e-3;
  const Table table = BaselineTable({{slower, did_not_run}, 2e-3}, {});
  Report report;
  report.AddTable(table);
  const nlohmann::json rows = nlohmann::json::parse(report.ToJson())["baselines"];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_DOUBLE_EQ(rows[0]["gain"], 0.25);
  EXPECT_DOUBLE_EQ(rows[0]["measured_seconds"], 2.5e-3);
  EXPECT_TRUE(rows[1]["measured_seconds"].is_null());
  EXPECT_EQ(rows[2]["baseline"], "the plan");
  EXPECT_DOUBLE_EQ(rows[2]["measured_seconds"], 2e-3);
  const Table none = BaselineTable({{did_not_run}, 0}, {});
  report = {};
  report.AddTable(none);
  EXPECT_TRUE(nlohmann::json::parse(report.ToJson())["baselines"][1]["measured_seconds"].is_null())
      << "there were no turns";
}

}  // namespace
}  // namespace tilesmith
