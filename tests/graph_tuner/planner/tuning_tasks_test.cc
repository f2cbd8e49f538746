#include "graph_tuner/planner/tuning_tasks.h"

#include <gtest/gtest.h>

namespace tilesmith {
namespace {

TEST(TuningTasksTest, FusedTasksPointAtWhatTheyReplace) {
  std::vector<TuneRow> rows;
  for (const char* text :
       {"ic16ih14oc32kh1+bias", "g32ic32ih14oc32kh3ph1", "ic16ih14oc32kh1+bias>g32ic32ih14oc32kh3ph1",
        "scale_shift>ic16ih14oc32kh1+bias", "ic8ih14oc32kh1+bias>g32ic32ih14oc32kh3ph1"}) {
    TuneRow row;
    row.task = {"", ParseWorkload(text), 1};
    rows.push_back(row);
  }
  std::vector<NetworkTask> tasks(rows.size());
  LinkAlternatives(rows, tasks);
  EXPECT_TRUE(tasks[0].replaces.empty());
  EXPECT_EQ(tasks[2].replaces, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(tasks[2].replaced_seconds, 0);
  EXPECT_EQ(tasks[3].replaces, (std::vector<size_t>{0}));
  EXPECT_GT(tasks[3].replaced_seconds, 0);
  EXPECT_TRUE(tasks[4].replaces.empty()) << "a part that is no task";
}

TEST(TuningTasksTest, AutoIsColdForNetworksLargerThanTheCache) {
  Target cpu;
  cpu.l3_bytes = 32 << 20;
  const std::vector<ConvTask> large{{"", ParseWorkload("ic512ih7oc512kh3ph1"), 2}};
  EXPECT_TRUE(ColdWeights({}, large, true, cpu));
  EXPECT_FALSE(ColdWeights({}, large, false, cpu));
  cpu.l3_bytes = 64 << 20;
  EXPECT_FALSE(ColdWeights({}, large, true, cpu));
  EXPECT_TRUE(ColdWeights(true, large, false, cpu));
}

}  // namespace
}  // namespace tilesmith
