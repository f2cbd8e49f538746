#include "tuner/records/log_stats.h"

#include <gtest/gtest.h>

#include "tests/tuner/support/sample_records.h"

namespace tilesmith {
namespace {

Record Trial(int64_t rows, double seconds, const char* in = "NCHW16c") {
  Record record = SampleRecord(seconds, in);
  record.config.Set("rows", rows);
  return record;
}

TEST(LogStats, CountsTrialsUntilItWasGoodEnough) {
  Record crashed = Trial(9, 0);
  crashed.status = TrialStatus::kRunCrash;
  Record other = Trial(5, 1.01, "NHWC");
  other.template_name = "winograd";
  other.purpose = kPurposeLayouts;
  // The first trial only looked good: timed again it is slow.
  const std::vector<Record> records = {Trial(1, 0.9), Trial(2, 2.0), crashed,       Trial(3, 1.04),
                                       other,         Trial(4, 1.0), Trial(1, 1.5), Trial(4, 1.0)};
  const std::vector<TaskStats> all = StatsOf(records);
  ASSERT_EQ(all.size(), 1u);
  const TaskStats& stats = all[0];
  EXPECT_EQ(stats.records, 8);
  EXPECT_EQ(stats.trials, 6);
  EXPECT_EQ(stats.ok, 5);
  EXPECT_EQ(stats.best->config.Get("rows"), 4);
  EXPECT_EQ(stats.until_5_percent, 4);
  EXPECT_EQ(stats.until_2_percent, 5);
  EXPECT_EQ(stats.other_layouts, 1);
  EXPECT_EQ(stats.layouts_purpose, 1);
  EXPECT_EQ(stats.templates, (std::map<std::string, int64_t>{{"direct", 5}, {"winograd", 1}}));
  EXPECT_EQ(stats.failures, (std::map<TrialStatus, int64_t>{{TrialStatus::kRunCrash, 1}}));
}

TEST(LogStats, OfFailuresAlone) {
  Record failed = Trial(1, 0);
  failed.status = TrialStatus::kBuildError;
  const std::vector<TaskStats> all = StatsOf(std::vector<Record>{failed});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].trials, 1);
  EXPECT_FALSE(all[0].best);
  EXPECT_FALSE(all[0].until_5_percent);
  EXPECT_TRUE(StatsOf({}).empty());
}

TEST(LogStats, SpansTimes) {
  std::vector<Record> records = {SampleRecord(), SampleRecord(), SampleRecord()};
  records[1].time = "2024-12-31T00:00:00Z";
  records[2].time = "";
  EXPECT_EQ(SpanOf(records).first, "2024-12-31T00:00:00Z");
  EXPECT_EQ(SpanOf(records).last, "2025-01-02T03:04:05Z");
  EXPECT_EQ(SpanOf({}).first, "");
}

}  // namespace
}  // namespace tilesmith
