#include "layouts/measure/crossing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace tilesmith {
namespace {

TEST(MeasureCrossing, IsNothingForOneThreadAndNeverLess) {
  const CrossingTiming alone = MeasureCrossing(4096, 1);
  EXPECT_EQ(alone.read_seconds, 0);
  EXPECT_EQ(alone.write_seconds, 0);
  for (const auto& [bytes, threads] : {std::pair<int64_t, int>{64, 2}, {100, 2}, {40000, 2}, {64, 3}}) {
    const CrossingTiming timing = MeasureCrossing(bytes, threads);
    for (const Crossing crossing : {Crossing::kRead, Crossing::kWrite}) {
      EXPECT_GE(timing.Of(crossing), 0);
      EXPECT_TRUE(std::isfinite(timing.Of(crossing)));
    }
  }
}

}  // namespace
}  // namespace tilesmith
