// The peak where the host takes cores away, by runs whose times are made up.
#include "templates/base/fma_peak.h"

#include <gtest/gtest.h>

namespace tilesmith {
namespace {

constexpr double kRun = 40e-6;

TEST(UndisturbedSeconds, ACoreThatIsAwayAtFirstIsWaitedFor) {
  int runs = 0;
  const double seconds = UndisturbedSeconds(
      [&](int threads) {
        const bool away = threads > 1 && ++runs <= 100;
        return away ? 4e-3 : kRun;
      },
      2);
  EXPECT_EQ(seconds, kRun);
}

TEST(UndisturbedSeconds, ThreadsOfOneCoreTakeTwiceAsLong) {
  int runs = 0;
  const double seconds = UndisturbedSeconds([&](int threads) { return ++runs, threads * kRun; }, 2);
  EXPECT_EQ(seconds, 2 * kRun);
  EXPECT_LE(runs, 5 * 90) << "which is no reason to go on";
}

TEST(UndisturbedSeconds, ACoreThatStaysAwayIsGivenUp) {
  EXPECT_EQ(UndisturbedSeconds([](int threads) { return threads > 1 ? 4e-3 : kRun; }, 2), 4e-3);
}

}  // namespace
}  // namespace tilesmith
