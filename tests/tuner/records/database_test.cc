#include "tuner/records/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "templates/base/conv_template.h"
#include "tests/support/temporary_files.h"
#include "tests/tuner/support/sample_records.h"
#include "tuner/records/log.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;

// One that builds.
Record GoodRecord(double seconds = 1e-3) {
  Record record = SampleRecord(seconds);
  const ConvTemplate& direct = FindConvTemplate("direct");
  record.config = direct.Default(record.workload, record.target);
  record.layouts = direct.Layouts(record.workload, record.config);
  record.task_trials = 99;
  return record;
}

size_t FoundLike(TuningDatabase& database, const Record& record) {
  return database.Find(record.workload, record.target, record.conditions).size();
}

void WriteLog(const std::string& path, const std::vector<Record>& records) {
  LogWriter writer(path);
  for (const Record& record : records) writer.Append(record);
}

TEST(Database, FileNamesAreFitForFileSystemsAndSayWhatRecordsDependOn) {
  Target target;
  target.model = "AMD EPYC(TM) 9B45 @ 2.1/GHz";
  target.isa = Isa::kAvx512;
  target.version = "1.2.3";
  EXPECT_EQ(FormerDatabaseFileName(target), "amd_epyc_tm_9b45_2_1_ghz_avx512.jsonl");
  EXPECT_EQ(DatabaseFileName(target),
            "amd_epyc_tm_9b45_2_1_ghz_avx512_1.2.3_" + SpaceFingerprint(Isa::kAvx512) + ".jsonl");
  target.model = "";
  EXPECT_EQ(FormerDatabaseFileName(target), "avx512.jsonl");
  target.device = "abacus";
  EXPECT_EQ(FormerDatabaseFileName(target), "abacus_avx512.jsonl");
}

TEST(Database, RecordsThatDoNotBuildDoNotCountAndAreSaidInOneLine) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("db.jsonl");
  std::vector<Record> records(6, GoodRecord(1e-9));
  records[0].config = ConfigOf({{"old_knob", 1}});
  records[1].config.Set("rows", 999);
  records[2].template_name = "gone";
  records[3].template_name = "depthwise";  // refuses the workload
  records[4].layouts.in = Layout::Blocked(24);
  records[5].layouts.out = records[5].layouts.out.WithType(DataType::kBf16);
  WriteLog(path, records);
  TuningDatabase database(path);
  EXPECT_EQ(FoundLike(database, records[0]), 0u);
  EXPECT_TRUE(database.warnings().empty());
  ASSERT_EQ(database.WarningsOfUseless().size(), 1u);
  EXPECT_THAT(database.WarningsOfUseless()[0], testing::AllOf(HasSubstr(path + ": 6 records do not count"),
                                                              HasSubstr("template direct: knob ")));
  database.Add(std::vector<Record>{GoodRecord()}, 99);
  EXPECT_EQ(FoundLike(database, records[0]), 1u);
}

TEST(Database, WhatBuildsInAFileOfTheFormerNameIsAStart) {
  const TemporaryDirectory directory;
  const std::string former = directory.File("former.jsonl"), path = directory.File("db.jsonl");
  Record stale = GoodRecord();
  stale.config = ConfigOf({{"old_knob", 1}});
  WriteLog(former, {GoodRecord(), stale});
  TuningDatabase database(path, former);
  const Record record = GoodRecord();
  const std::vector<Record> found = database.Find(record.workload, record.target, record.conditions);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(TrialsBehind(found), 0) << "nobody knows what the space was then";
  ASSERT_EQ(database.WarningsOfUseless().size(), 1u);
  EXPECT_THAT(database.WarningsOfUseless()[0], HasSubstr(former + ": 1 records do not count"));
  WriteLog(path, {GoodRecord()});
  TuningDatabase both(path, former);
  EXPECT_EQ(TrialsBehind(both.Find(record.workload, record.target, record.conditions)), 99);
}

TEST(Database, KeepsTheBestOfEachTemplateAndPair) {
  std::vector<Record> records = {SampleRecord(3e-3), SampleRecord(2e-3), SampleRecord(1e-3, "NHWC"),
                                 SampleRecord(5e-3)};
  records[3].template_name = "winograd";
  Record failed = SampleRecord(1e-9);
  failed.status = TrialStatus::kWrongAnswer;
  Record early = SampleRecord(1e-9);
  early.early_stopped = true;
  records.push_back(failed);
  records.push_back(early);
  for (size_t i = 0; i < records.size(); ++i) records[i].config.Set("rows", static_cast<int64_t>(i));
  const TemporaryDirectory directory;
  const std::string path = directory.File("db.jsonl");
  EXPECT_TRUE(TuningDatabase(path).Add(records, 50));
  const std::vector<Record> distilled = ReadLog(path).records;
  ASSERT_EQ(distilled.size(), 3u);
  EXPECT_EQ(distilled[0].layouts, records[2].layouts) << "sorted by template and layouts";
  EXPECT_EQ(distilled[1].seconds, 2e-3);
  EXPECT_EQ(distilled[2].template_name, "winograd");
  for (const Record& record : distilled) EXPECT_EQ(record.task_trials, 50);
  EXPECT_EQ(TrialsBehind(distilled), 50);
  EXPECT_EQ(TrialsBehind({}), 0);
}

TEST(Database, FindsWhatItWasTold) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("new/folder/db.jsonl");
  const std::vector<Record> records = {GoodRecord()};
  {
    TuningDatabase database(path);
    EXPECT_TRUE(database.warnings().empty()) << "a missing file is an empty database";
    EXPECT_TRUE(database.Add(records, 99));
  }
  TuningDatabase database(path);
  const Record& record = records[0];
  const auto found = [&](const ConvWorkload& workload, const Target& target, MeasureConditions conditions) {
    return database.Find(workload, target, conditions).size();
  };
  EXPECT_EQ(found(record.workload, record.target, record.conditions), 1u);
  EXPECT_EQ(TrialsBehind(database.Find(record.workload, record.target, record.conditions)), 99);
  EXPECT_EQ(found(ParseWorkload("ic8ih8oc8kh1"), record.target, record.conditions), 0u);
  EXPECT_EQ(found(record.workload, record.target, {1, true, false}), 0u) << "other conditions";
  Target other = record.target;
  other.version = "99.0";
  EXPECT_EQ(found(record.workload, other, record.conditions), 0u) << "other templates may find better";
  other = record.target;
  other.model = "another";
  EXPECT_EQ(found(record.workload, other, record.conditions), 0u);
}

TEST(Database, WhatIsBrokenOrUnwritableIsAWarning) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("db.jsonl");
  WriteFile(path, "not a log\n{\"half\": ");
  TuningDatabase broken(path);
  ASSERT_EQ(broken.warnings().size(), 1u);
  EXPECT_THAT(broken.warnings()[0], HasSubstr("2 lines skipped"));
  EXPECT_TRUE(broken.Add(std::vector<Record>{GoodRecord()}, 99));
  TuningDatabase again(path);
  EXPECT_EQ(FoundLike(again, GoodRecord()), 1u);

  TuningDatabase nowhere("/proc/nowhere/db.jsonl");
  EXPECT_FALSE(nowhere.Add(std::vector<Record>{SampleRecord()}, 99));
  ASSERT_EQ(nowhere.warnings().size(), 1u);
  EXPECT_THAT(nowhere.warnings()[0], HasSubstr("/proc/nowhere"));
  EXPECT_FALSE(TuningDatabase(directory.path()).warnings().empty()) << "a folder is no database";
}

}  // namespace
}  // namespace tilesmith
