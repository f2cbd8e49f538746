#include "tuner/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_files.h"
#include "tests/tuner/support/sample_records.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;

TEST(Database, FileNamesAreFitForFileSystems) {
  Target target;
  target.cpu_model = "AMD EPYC(TM) 9B45 @ 2.1/GHz";
  target.isa = Isa::kAvx512;
  EXPECT_EQ(DatabaseFileName(target), "amd_epyc_tm_9b45_2_1_ghz_avx512.jsonl");
  target.cpu_model = "";
  EXPECT_EQ(DatabaseFileName(target), "avx512.jsonl");
}

TEST(Database, KeepsTheBestOfEachTemplateAndPair) {
  std::vector<Record> records = {SampleRecord(3e-3), SampleRecord(2e-3), SampleRecord(1e-3, "NHWC"),
                                 SampleRecord(5e-3)};
  records[1].config = ConfigOf({{"rows", 1}});
  records[3].template_name = "winograd";
  Record failed = SampleRecord(1e-9);
  failed.status = TrialStatus::kWrongAnswer;
  Record early = SampleRecord(1e-9);
  early.early_stopped = true;
  records.push_back(failed);
  records.push_back(early);
  const std::vector<Record> distilled = Distilled(records, 50);
  ASSERT_EQ(distilled.size(), 3u);
  for (const Record& record : distilled) EXPECT_EQ(record.task_trials, 50);
  EXPECT_EQ(TrialsBehind(distilled), 50);
  EXPECT_EQ(TrialsBehind({}), 0);
}

TEST(Database, FindsWhatItWasTold) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("new/folder/db.jsonl");
  const std::vector<Record> records = Distilled(std::vector<Record>{SampleRecord(1e-3)}, 99);
  {
    TuningDatabase database(path);
    EXPECT_TRUE(database.warnings().empty()) << "a missing file is an empty database";
    EXPECT_TRUE(database.Add(records));
  }
  const TuningDatabase database(path);
  const Record& record = records[0];
  const auto found = [&](const ConvWorkload& workload, const Target& target, MeasureConditions conditions) {
    return database.Find(workload, target, conditions).size();
  };
  EXPECT_EQ(found(record.workload, record.target, record.conditions), 1u);
  EXPECT_EQ(TrialsBehind(database.Find(record.workload, record.target, record.conditions)), 99);
  EXPECT_EQ(found(ParseWorkload("ic8ih8oc8kh1"), record.target, record.conditions), 0u);
  EXPECT_EQ(found(record.workload, record.target, {1, true, false}), 0u) << "other conditions";
  Target other = record.target;
  other.tool_version = "99.0";
  EXPECT_EQ(found(record.workload, other, record.conditions), 0u) << "other templates may find better";
  other = record.target;
  other.cpu_model = "another";
  EXPECT_EQ(found(record.workload, other, record.conditions), 0u);
}

TEST(Database, WhatIsBrokenOrUnwritableIsAWarning) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("db.jsonl");
  WriteFile(path, "not a log\n{\"half\": ");
  TuningDatabase broken(path);
  ASSERT_EQ(broken.warnings().size(), 1u);
  EXPECT_THAT(broken.warnings()[0], HasSubstr("2 lines skipped"));
  EXPECT_TRUE(broken.Add(std::vector<Record>{SampleRecord()}));
  EXPECT_EQ(
      TuningDatabase(path).Find(SampleRecord().workload, SampleRecord().target, {2, true, false}).size(), 1u);

  TuningDatabase nowhere("/proc/nowhere/db.jsonl");
  EXPECT_FALSE(nowhere.Add(std::vector<Record>{SampleRecord()}));
  ASSERT_EQ(nowhere.warnings().size(), 1u);
  EXPECT_THAT(nowhere.warnings()[0], HasSubstr("/proc/nowhere"));
  EXPECT_FALSE(TuningDatabase(directory.path()).warnings().empty()) << "a folder is no database";
}

}  // namespace
}  // namespace tilesmith
