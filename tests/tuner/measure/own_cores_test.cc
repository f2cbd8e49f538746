#include <gtest/gtest.h>

#include <chrono>

#include "tuner/measure/worker.h"

namespace tilesmith {
namespace {

TEST(OwnCoresTest, OneThreadIsNeverWaitedFor) {
  OwnCores cores(1);
  EXPECT_TRUE(cores.AreKept());
  cores.Await();
  EXPECT_TRUE(cores.AreKept());
}

// Whatever the machine does meanwhile.
TEST(OwnCoresTest, WaitingEnds) {
  using Clock = std::chrono::steady_clock;
  OwnCores cores(2);
  EXPECT_TRUE(cores.AreKept()) << "the first look sees nothing worse than itself";
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 20; ++i) cores.Await();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(60));
}

}  // namespace
}  // namespace tilesmith
