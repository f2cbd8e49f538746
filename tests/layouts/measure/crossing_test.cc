#include "layouts/measure/crossing.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tilesmith {
namespace {

TEST(MeasureCrossing, IsNothingForOneThreadAndNeverLess) {
  const CrossingTiming alone = MeasureCrossing(4096, 1);
  EXPECT_EQ(alone.read_seconds, 0);
  EXPECT_EQ(alone.write_seconds, 0);
  for (const int64_t bytes : {64, 100, 40000}) {
    const CrossingTiming timing = MeasureCrossing(bytes, 2);
    for (const Crossing crossing : {Crossing::kRead, Crossing::kWrite}) {
      EXPECT_GE(timing.Of(crossing), 0);
      EXPECT_TRUE(std::isfinite(timing.Of(crossing)));
    }
  }
}

}  // namespace
}  // namespace tilesmith
