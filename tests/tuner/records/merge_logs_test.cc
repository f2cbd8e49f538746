#include <gtest/gtest.h>

#include "tests/tuner/support/sample_records.h"
#include "tuner/records/log.h"

namespace tilesmith {
namespace {

using Lines = std::vector<std::string_view>;

Record At(const std::string& time, const char* cpu = "a") {
  Record record = SampleRecord();
  record.time = time;
  record.target.model = cpu;
  return record;
}

TEST(MergeLogs, SortsByTimeAndThenByArrival) {
  LogMerger merger;
  merger.Add("monday 1", At("2025-01-06T10:00:00Z"));
  merger.Add("monday 2", At("2025-01-06T10:00:00Z"));
  merger.Add("sunday", At("2025-01-05T10:00:00Z", "b"));
  merger.Add("monday 0", At("2025-01-06T10:00:00Z"));
  EXPECT_EQ(merger.Sorted(), (Lines{"sunday", "monday 1", "monday 2", "monday 0"}));
  ASSERT_EQ(merger.targets().size(), 2u);
  EXPECT_EQ(merger.targets()[0].records, 3);
  EXPECT_EQ(merger.targets()[1].target.model, "b");
}

TEST(MergeLogs, DropsWhatIsTheSameByteForByte) {
  LogMerger merger;
  const Record record = At("2025-01-06T10:00:00Z");
  merger.Add("one", record);
  merger.Add("one", record);
  merger.Add("one\r", record);  // a file that went through another system
  merger.Add("two", record);
  EXPECT_EQ(merger.Sorted(), (Lines{"one", "two"}));
  EXPECT_EQ(merger.duplicates(), 2);
  EXPECT_EQ(merger.targets()[0].records, 2);
}

}  // namespace
}  // namespace tilesmith
