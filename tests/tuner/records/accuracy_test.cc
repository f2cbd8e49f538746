#include "tuner/records/accuracy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "layouts/base/error.h"
#include "tests/tuner/support/sample_records.h"
#include "tuner/records/record_groups.h"
#include "tuner/trial_book.h"
#include "tuner/tune.h"

namespace tilesmith {
namespace {

Record WithError(std::optional<double> error, double seconds, int64_t rows) {
  Record record = SampleRecord(seconds);
  record.error = error;
  record.config.Set("rows", rows);
  return record;
}

TEST(AccuracyTest, RecordsBeyondTheLimitsAreNotAccepted) {
  EXPECT_TRUE(Accepts({}, WithError(std::nullopt, 1, 1)));
  EXPECT_TRUE(Accepts({}, WithError(0.5, 1, 1)));
  const AccuracyLimits strict{1e-6, {}};
  EXPECT_TRUE(Accepts(strict, WithError(1e-6, 1, 1)));
  EXPECT_FALSE(Accepts(strict, WithError(1.1e-6, 1, 1)));
  EXPECT_FALSE(Accepts(strict, WithError(std::nullopt, 1, 1))) << "an unknown error may be any";
  EXPECT_FALSE(Accepts({.forbidden_templates = {"portable", "direct"}}, WithError(0, 1, 1)));
  EXPECT_EQ(AcceptedRecords(strict, {WithError(1e-7, 1, 1), WithError(1, 1, 2)}).size(), 1u);
  Record wrong = WithError(std::nullopt, 0, 1);
  wrong.status = TrialStatus::kWrongAnswer;
  EXPECT_TRUE(StandingRecords(AcceptedRecords(strict, {WithError(1e-7, 1, 1), wrong})).empty())
      << "what was wrong later stays out";
}

TEST(AccuracyTest, ABookKeepsThemButNeverCallsThemBest) {
  TrialBook book({1e-6, {}});
  book.Enter(WithError(1e-5, 1.0, 1));
  EXPECT_EQ(book.Best(), nullptr);
  EXPECT_TRUE(book.BestOfPairs().empty());
  book.Enter(WithError(1e-7, 2.0, 2));
  ASSERT_NE(book.Best(), nullptr);
  EXPECT_EQ(book.Best()->seconds, 2.0);
  EXPECT_EQ(book.size(), 2);
}

TEST(AccuracyTest, LimitsAreChecked) {
  EXPECT_THROW(CheckAccuracyLimits({0, {}}), Error);
  EXPECT_THROW(CheckAccuracyLimits({1, {"nonesuch"}}), Error);
  CheckAccuracyLimits({1e-5, {"direct"}});
}

TEST(AccuracyTest, ForbiddenTemplatesAreNotTuned) {
  Target cpu;
  cpu.isa = Isa::kPortable;
  const ConvWorkload workload = ParseWorkload("ic64ih56oc64kh3ph1");
  EXPECT_FALSE(TemplatesToTune(workload, cpu).empty());
  EXPECT_TRUE(TemplatesToTune(workload, cpu, {.forbidden_templates = {"portable"}}).empty());
}

TEST(AccuracyTest, ARecordsErrorSurvivesItsText) {
  const Record record = WithError(3.25e-7, 1, 1);
  EXPECT_EQ(RecordFromJson(RecordToJson(record)).error, record.error);
  EXPECT_EQ(RecordFromJson(RecordToJson(SampleRecord(1))).error, std::nullopt);
}

}  // namespace
}  // namespace tilesmith
