#include "tuner/records/record_groups.h"

#include <gtest/gtest.h>

#include "tests/tuner/support/random_records.h"

namespace tilesmith {
namespace {

TEST(RecordGroups, KeepMachinesWorkloadsAndConditionsApart) {
  TestRandom random(3);
  const std::vector<Record> records = RandomRecords(random, 500);
  const std::vector<RecordGroup> groups = GroupRecords(PointersTo(records));
  size_t total = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    total += groups[i].records.size();
    for (const Record* record : groups[i].records) {
      EXPECT_EQ(record->workload, groups[i].workload);
      EXPECT_EQ(record->conditions, groups[i].conditions);
      EXPECT_TRUE(SameMachine(record->target, groups[i].target));
    }
    EXPECT_TRUE(std::is_sorted(groups[i].records.begin(), groups[i].records.end()));
    for (size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(groups[i].workload == groups[j].workload && groups[i].conditions == groups[j].conditions &&
                   SameMachine(groups[i].target, groups[j].target));
      // Machines are not scattered.
      if (SameMachine(groups[i].target, groups[j].target)) {
        EXPECT_TRUE(SameMachine(groups[i - 1].target, groups[i].target));
      }
    }
  }
  EXPECT_EQ(total, records.size());
}

TEST(RecordGroups, OneRecordOfEachConfigStands) {
  Record lucky = SampleRecord(1), later = SampleRecord(2), elsewhere = SampleRecord(3),
         cold = SampleRecord(4);
  elsewhere.target.model = "another";
  cold.conditions.cold_weights = true;
  Record crashed = SampleRecord(0);
  crashed.status = TrialStatus::kRunCrash;
  std::vector<Record> records = {lucky, elsewhere, later, cold};
  EXPECT_EQ(StandingRecords(records), (std::vector<const Record*>{&records[1], &records[2], &records[3]}));
  records.push_back(crashed);
  EXPECT_EQ(StandingRecords(records), (std::vector<const Record*>{&records[1], &records[3]}));
  records.push_back(lucky);
  EXPECT_EQ(StandingRecords(records).size(), 3u) << "it works again";
}

TEST(RecordGroups, CountTargetsByMachine) {
  std::vector<Record> records = {SampleRecord(), SampleRecord(), SampleRecord()};
  records[0].target.version = "0.0.1";
  records[2].target.isa = Isa::kAvx2;
  const std::vector<TargetCount> counts = CountTargets(records);
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].records, 2);
  EXPECT_EQ(counts[1].target.isa, Isa::kAvx2);
}

}  // namespace
}  // namespace tilesmith
