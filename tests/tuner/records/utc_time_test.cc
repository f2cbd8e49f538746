#include <gtest/gtest.h>

#include "tuner/records/record.h"

namespace tilesmith {
namespace {

TEST(UtcTime, GoesBothWays) {
  EXPECT_EQ(UtcText(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(UtcText(1735787045), "2025-01-02T03:04:05Z");
  for (const int64_t seconds : {0L, 951782400L, 1735787045L, 4102444800L})
    EXPECT_EQ(UtcSeconds(UtcText(seconds)), seconds);
  for (const char* text : {"", "now", "2025-01-02", "2025-13-02T03:04:05Z", "2025-01-02T03:04:05Z+1"})
    EXPECT_FALSE(UtcSeconds(text)) << text;
  EXPECT_GT(UtcSeconds(UtcNow()), 1700000000);
}

}  // namespace
}  // namespace tilesmith
