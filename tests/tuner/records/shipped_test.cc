#include "tuner/records/shipped.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/test_cpu.h"
#include "tuner/records/record_key.h"
#include "tuner/records/still_builds.h"

namespace tilesmith {
namespace {

Record ShippedRecord(const std::string& workload, int64_t tile, double seconds) {
  Record record;
  record.target = TestCpu();
  record.workload = ParseWorkload(workload);
  record.template_name = "direct";
  record.config.Set("tile", tile);
  record.conditions.threads = 2;
  record.status = TrialStatus::kOk;
  record.seconds = seconds;
  return record;
}

TEST(ShippedRecordsTest, TheFastestOfTheMachineComeFirstAndNoneTwice) {
  const std::string conv = "mb1ic16ih14oc16oh14kh3ph1";
  std::vector<Record> shipped = {ShippedRecord(conv, 1, 3e-3), ShippedRecord(conv, 2, 2e-3),
                                 ShippedRecord(conv, 3, 1e-3), ShippedRecord(conv, 4, 1e-3),
                                 ShippedRecord("mb1ic16ih14oc32oh14kh3ph1", 5, 1e-3)};
  shipped[2].target.model = "another CPU";
  shipped[3].conditions.threads = 1;
  shipped.push_back(shipped[0]);
  shipped.push_back(ShippedRecord(conv, 6, 1e-4));
  shipped.back().status = TrialStatus::kRunCrash;
  shipped.push_back(ShippedRecord(conv, 7, 1e-4));
  shipped.back().target.isa = TestCpu().isa == Isa::kAvx512 ? Isa::kAvx2 : Isa::kAvx512;
  std::vector<int64_t> tiles;
  for (const Record& one : Suggestions(shipped, ParseWorkload(conv), TestCpu(), 2))
    tiles.push_back(one.config.Get("tile"));
  EXPECT_EQ(tiles, (std::vector<int64_t>{2, 1, 4, 3}));
  EXPECT_EQ(Suggestions(shipped, ParseWorkload(conv), TestCpu(), 2, 2).size(), 2u);
}

// What comes with tilesmith can be read, worked, and is of known templates.
TEST(ShippedRecordsTest, AllOfThemAreOfUse) {
  size_t lines = 0;
  for (const ShippedLog& log : ShippedLogs()) {
    EXPECT_FALSE(log.name.empty());
    lines += static_cast<size_t>(std::ranges::count(log.text, '\n'));
  }
  EXPECT_EQ(ShippedRecords().size(), lines);
  for (const Record& record : ShippedRecords()) {
    EXPECT_EQ(record.status, TrialStatus::kOk) << ScheduleText(record);
    EXPECT_EQ(WhyNotBuilt(record, record.target), "") << ScheduleText(record);
  }
}

}  // namespace
}  // namespace tilesmith
