#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/tuner/support/random_records.h"
#include "tuner/records/accuracy.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {
namespace {

std::vector<Record> Distilled(const std::vector<Record>& records, int64_t top) {
  std::vector<Record> kept;
  for (const Record* record : Distill(records, {.top = top})) kept.push_back(*record);
  return kept;
}

// Bytes, so that no field is forgotten.
std::string TextOf(const BestByWorkload& best) {
  std::string text;
  for (const auto& [workload, pairs] : best) {
    for (const auto& [layouts, record] : pairs) text += RecordToJson(record).dump() + "\n";
  }
  return text;
}

void ExpectSameBest(const std::vector<Record>& all, const std::vector<Record>& kept) {
  for (const TargetCount& count : CountTargets(all)) {
    EXPECT_EQ(TextOf(BestRecords(kept, count.target)), TextOf(BestRecords(all, count.target)));
    for (int bits = 0; bits < 8; ++bits) {
      const MeasureConditions conditions = {1 + bits / 4, bits % 4 / 2 == 1, bits % 2 == 1};
      EXPECT_EQ(TextOf(BestRecords(kept, count.target, &conditions)),
                TextOf(BestRecords(all, count.target, &conditions)));
    }
  }
}

TEST(Distill, ADistilledLogHasTheSameBestRecords) {
  TestRandom random(4);
  for (int i = 0; i < 40; ++i) {
    std::vector<Record> records = RandomRecords(random, static_cast<int>(random.Integer(0, 150)));
    for (Record& record : records) record.detail.clear();  // no invalid UTF-8 for dump()
    for (const int64_t top : {1, 2, 5}) {
      const std::vector<Record> kept = Distilled(records, top);
      ExpectSameBest(records, kept);
      EXPECT_EQ(Distilled(kept, top).size(), kept.size()) << "distilling again changes nothing";
    }
  }
}

TEST(Distill, LimitsOnAccuracyStillFindTheirBest) {
  TestRandom random(5);
  for (int i = 0; i < 40; ++i) {
    std::vector<Record> records = RandomRecords(random, 100);
    // Every config once and none failed: limits look at one record at a time.
    for (size_t k = 0; k < records.size(); ++k) {
      records[k].config.Set("number", static_cast<int64_t>(k));
      records[k].detail.clear();
      records[k].status = TrialStatus::kOk;
      if (records[k].seconds == 0) records[k].seconds = 1e-6;
    }
    const std::vector<Record> kept = Distilled(records, 1);
    AccuracyLimits limits;
    if (random.Integer(0, 1) == 0) limits.max_error = random.Uniform(0, 1e-4F);
    if (random.Integer(0, 1) == 0) limits.forbidden_templates = {"winograd"};
    ExpectSameBest(AcceptedRecords(limits, records), AcceptedRecords(limits, kept));
  }
}

TEST(Distill, KeepsAsManyAsAsked) {
  std::vector<Record> records;
  for (int i = 0; i < 10; ++i) {
    records.push_back(SampleRecord(1 + i % 4));
    records.back().config.Set("rows", i);
  }
  EXPECT_EQ(Distill(records).size(), 1u);
  EXPECT_EQ(Distill(records, {.top = 3}).size(), 3u);
  EXPECT_EQ(Distill(records, {.top = 100}).size(), 10u);
  EXPECT_EQ(Distill(records)[0], &records[0]) << "of equals the first";
}

}  // namespace
}  // namespace tilesmith
