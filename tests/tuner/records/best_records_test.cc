#include <gtest/gtest.h>

#include "tests/tuner/support/sample_records.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {
namespace {

Record WithRows(double seconds, int64_t rows, const char* in = "NCHW16c") {
  Record record = SampleRecord(seconds, in);
  record.config.Set("rows", rows);
  return record;
}

TEST(BestRecords, KeepsTheFastestOfEachLayoutPairWhateverTheTemplate) {
  std::vector<Record> records = {WithRows(3, 1), WithRows(2, 2), WithRows(4, 4, "NCHW8c"), WithRows(5, 8)};
  records.push_back(WithRows(1.5, 2));
  records.back().template_name = "winograd";
  const BestByWorkload best = BestRecords(records, records[0].target);
  ASSERT_EQ(best.size(), 1u);
  const BestByLayouts& pairs = best.at(WorkloadToString(records[0].workload));
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs.at(records[0].layouts).template_name, "winograd");
  EXPECT_EQ(pairs.at(records[2].layouts).seconds, 4);
}

TEST(BestRecords, IgnoresFailuresOtherMachinesAndOtherConditions) {
  Record failed = WithRows(1, 1);
  failed.status = TrialStatus::kWrongAnswer;
  Record foreign = WithRows(1, 2);
  foreign.target.model = "another";
  Record cold = WithRows(1, 3);
  cold.conditions.cold_weights = true;
  const Record good = WithRows(2, 4);
  const std::vector<Record> records = {failed, foreign, cold, good};
  const auto seconds = [&](const MeasureConditions* conditions) {
    return BestRecords(records, good.target, conditions).begin()->second.at(good.layouts).seconds;
  };
  EXPECT_EQ(seconds(&good.conditions), 2);
  EXPECT_EQ(seconds(&cold.conditions), 1);
  EXPECT_EQ(seconds(nullptr), 1);
  EXPECT_TRUE(BestRecords({}, good.target).empty());
}

TEST(BestRecords, TheLaterRecordOfAConfigCountsUnlessItIsRougherOrTheMachineFailed) {
  const Record lucky = WithRows(1, 1), retimed = WithRows(1.4, 1), other = WithRows(1.2, 2);
  Record stopped = WithRows(0.5, 2);
  stopped.early_stopped = true;
  Record crashed = WithRows(0, 2);
  crashed.status = TrialStatus::kRunCrash;
  Record lost = WithRows(0, 2);
  lost.status = TrialStatus::kWorkerLost;
  const auto best = [&](std::vector<Record> records) {
    return BestRecords(records, lucky.target).begin()->second.at(lucky.layouts).seconds;
  };
  EXPECT_EQ(best({lucky, other}), 1);
  EXPECT_EQ(best({lucky, other, retimed}), 1.2) << "the lucky first measurement is superseded";
  EXPECT_EQ(best({lucky, other, retimed, stopped}), 1.2) << "early-stopped does not replace full";
  EXPECT_EQ(best({stopped, retimed}), 1.4) << "full beats early-stopped";
  EXPECT_EQ(best({stopped}), 0.5) << "better than nothing";
  EXPECT_EQ(best({lucky, other, retimed, crashed}), 1.4) << "what crashed later is no candidate";
  EXPECT_EQ(best({lucky, other, retimed, lost}), 1.2) << "a lost worker says nothing about the config";
}

}  // namespace
}  // namespace tilesmith
