#include "layouts/measure/crossing.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tilesmith {
namespace {

TEST(MeasureCrossing, IsNothingForOneThreadAndNeverLess) {
  const CrossingTiming alone = MeasureCrossing(4096, 1);
  for (const Crossing crossing : kCrossings) EXPECT_EQ(alone.Of(crossing), 0);
  for (const int64_t bytes : {64, 100, 40000}) {
    const CrossingTiming timing = MeasureCrossing(bytes, 2);
    for (const Crossing crossing : kCrossings) {
      EXPECT_GE(timing.Of(crossing), 0);
      EXPECT_TRUE(std::isfinite(timing.Of(crossing)));
    }
  }
}

}  // namespace
}  // namespace tilesmith
