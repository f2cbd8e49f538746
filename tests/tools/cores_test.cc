#include "tools/api/cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/refusal.h"
#include "tools/api/tilesmith.h"

namespace tilesmith {
namespace {

TEST(Cores, ListsOfTheKernel) {
  EXPECT_EQ(ParseCpuList("0-3,8,10-11\n"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(ParseCpuList("\n"), std::vector<int>());
  for (const char* wrong : {"a", "1-", "3-1", "1,,2", "1;2", "-1", "0-99999999"})
    EXPECT_THAT(Refusal(ErrorCode::kEnvironment, [&] { ParseCpuList(wrong); }), testing::HasSubstr(wrong));
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [] { CoresOfNumaNode(4711); }), testing::HasSubstr("4711"));
}

TEST(Cores, AreSomeDistanceApart) {
  EXPECT_EQ(CoreDistance(1), 0);
  EXPECT_GT(CoreDistance(2), 0);
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [] { CoreDistance(0); }),
              testing::HasSubstr("threads must be at least 1, got 0"));
}

}  // namespace
}  // namespace tilesmith
